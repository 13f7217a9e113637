package server_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/graph/kinds/kindstest"
	"github.com/sluicegw/sluice/graph/server"
)

// edge is a server over a store that a test can spoil.
type edge struct {
	http.Handler
	log *observer.ObservedLogs
	// token of the caller; empty for an anonymous one.
	token string
}

// identify adds the caller's token to a header.
func (e edge) identify(header http.Header) {
	if e.token != "" {
		header.Set("Authorization", "Bearer "+e.token)
	}
}

func newEdge(t testing.TB, wrap func(backend.Store) backend.Store, cfg server.Config) edge {
	t.Helper()
	core, log := observer.New(zap.DebugLevel)
	cfg.Logger = zap.New(core)
	return edge{Handler: newServer(t, wrap, &cfg).Handler(), log: log}
}

// newServer is a server over a store in memory. No operation is ended by the clock, which on a busy
// machine may be before any other limit, unless the test asks for that.
func newServer(t testing.TB, wrap func(backend.Store) backend.Store, cfg *server.Config) *server.Server {
	t.Helper()
	cfg.Limits.Time = cmp.Or(cfg.Limits.Time, time.Hour)
	cfg.Caller.Steps = cmp.Or(cfg.Caller.Steps, math.MaxInt32)
	store, err := memory.Open(memory.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	svc, err := service.New(service.Config{Kinds: kindstest.Kinds(t), Store: wrap(store), Logger: cfg.Logger})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Catalogue = server.Single(svc, kindstest.API(t))
	s, err := server.New(*cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func plain(s backend.Store) backend.Store { return s }

func (e edge) post(t testing.TB, query string, variables any) string {
	t.Helper()
	body, err := json.Marshal(map[string]any{"query": query, "variables": variables})
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodPost, "/graphql", bytes.NewReader(body))
	r.Host, r.RemoteAddr = "localhost", "127.0.0.1:1" // callers on this machine are not limited
	r.Header.Set("Content-Type", "application/json")
	e.identify(r.Header)
	w := httptest.NewRecorder()
	e.ServeHTTP(w, r)
	return w.Body.String()
}

const create = `mutation($name: String!, $mtu: Int) { createNetwork(input: {name: $name, spec: {cloudCredentialsRef: {secretName: "s", cloudName: "c"}, resource: {mtu: $mtu, tags: ["a", "b"]}}}) { network { id } } }`

// broken is a store whose writes and reads fail as told, and whose log cannot
// tell what became of a write.
type broken struct {
	backend.Store
	err error
}

func (b broken) Apply(context.Context, backend.Batch) (backend.Result, error) {
	return backend.Result{}, b.err
}

func (b broken) Get(context.Context, ...backend.Key) ([]*backend.Resource, error) { return nil, b.err }

func (b broken) Watch(context.Context, backend.Watch) (backend.Watcher, error) {
	return nil, backend.ErrPositionExpired
}

func TestFailuresOfTheStoreAreTranslatedAndTheirCauseStaysInTheLog(t *testing.T) {
	const secret = "dial tcp: password hunter2 refused"
	for _, c := range []struct {
		err  error
		want []string
	}{
		{errors.New(secret), []string{`"code":"INTERNAL"`, `"message":"internal error"`}},
		{fmt.Errorf("%w: %s", backend.ErrUnavailable, secret), []string{`"code":"UNAVAILABLE"`, `"retryable":true`}},
		{fmt.Errorf("%w: %s", backend.ErrUnknown, secret), []string{`"code":"UNAVAILABLE"`, `"outcome":"UNKNOWN"`, `"retryable":false`}},
		{fmt.Errorf("%w: %s", backend.ErrDeadline, secret), []string{`"code":"TIMEOUT"`, `"retryable":true`}},
		{context.DeadlineExceeded, []string{`"code":"TIMEOUT"`}},
	} {
		e := newEdge(t, func(s backend.Store) backend.Store { return broken{s, c.err} }, server.Config{})
		got := e.post(t, create, map[string]any{"name": "a"})
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("%v: %s lacks %s", c.err, got, want)
			}
		}
		if strings.Contains(got, "hunter2") {
			t.Errorf("the cause reached the client: %s", got)
		}
		if strings.Contains(c.err.Error(), secret) && strings.Contains(got, "INTERNAL") && !strings.Contains(fmt.Sprint(e.log.All()), "hunter2") {
			t.Errorf("the cause is not in the log: %v", e.log.All())
		}
	}
}

func TestServer_RefusesValuesThatAreNotCoerced(t *testing.T) {
	e := newEdge(t, plain, server.Config{})
	for _, c := range []struct {
		query     string
		variables map[string]any
		want      []string
	}{
		{`{ networks(first: 99999999999) { totalCount } }`, nil, []string{`"code":"GRAPHQL_VALIDATION_FAILED"`, "Int is accepted here, not this number"}},
		{
			`mutation($c: Boolean = true) { updateKind(input: {kind: "Network", controlled: $c}) { kind { name } } }`,
			map[string]any{"c": nil},
			[]string{`"code":"BAD_USER_INPUT"`, `"path":["input","controlled"]`, "input.controlled: the variable $c is null; Boolean! is wanted"},
		},
		{
			`mutation($rev: String) { deleteNetwork(input: {name: "a", expectedRevision: $rev}) { state } }`, nil,
			[]string{`"code":"BAD_USER_INPUT"`, `"path":["input","expectedRevision"]`, "the variable $rev has no value; give it one, or null for none"},
		},
	} {
		got := e.post(t, c.query, c.variables)
		for _, want := range append(c.want, `{"errors":`) {
			if !strings.Contains(got, want) {
				t.Errorf("%s %v: %s lacks %s", c.query, c.variables, got, want)
			}
		}
		if strings.Contains(got, `"data"`) {
			t.Errorf("%s was executed: %s", c.query, got)
		}
	}
}

// slow is a store whose reads last as long as the request.
type slow struct{ backend.Store }

func (slow) Get(ctx context.Context, _ ...backend.Key) ([]*backend.Resource, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestARequestEndsAtItsTimeLimit(t *testing.T) {
	e := newEdge(t, func(s backend.Store) backend.Store { return slow{s} }, server.Config{Limits: server.Limits{Time: 20 * time.Millisecond}})
	if got := e.post(t, `{ network(name: "a") { id } }`, nil); !strings.Contains(got, `"code":"TIMEOUT"`) {
		t.Errorf("answer %s", got)
	}
}

func TestConfigurationErrorsNameTheUsersKeys(t *testing.T) {
	_, err := server.New(server.Config{Limits: server.Limits{Depth: -1, Time: -1}})
	if err == nil || !strings.Contains(err.Error(), "limit-depth") || !strings.Contains(err.Error(), "limit-time") || !strings.Contains(err.Error(), "service") {
		t.Errorf("error %v", err)
	}
}

func TestDeferIsNotAdvertised(t *testing.T) {
	e := newEdge(t, plain, server.Config{})
	if got := e.post(t, `{ __schema { directives { name } } }`, nil); strings.Contains(got, "defer") || !strings.Contains(got, "include") || strings.Contains(got, "constraint") {
		t.Errorf("directives %s", got)
	}
}

func TestTheIntrospectionQueryOfToolsIsWithinTheLimits(t *testing.T) {
	ref := "kind name"
	for range 9 {
		ref = "kind name ofType { " + ref + " }"
	}
	query := `query IntrospectionQuery { __schema { queryType { name } mutationType { name } subscriptionType { name } types { ...FullType } directives { name description locations args { ...InputValue } } } }
		fragment FullType on __Type { kind name description fields(includeDeprecated: true) { name description args { ...InputValue } type { ...TypeRef } isDeprecated deprecationReason } inputFields { ...InputValue } interfaces { ...TypeRef } enumValues(includeDeprecated: true) { name description isDeprecated deprecationReason } possibleTypes { ...TypeRef } }
		fragment InputValue on __InputValue { name description type { ...TypeRef } defaultValue }
		fragment TypeRef on __Type { ` + ref + ` }`
	e := newEdge(t, plain, server.Config{})
	if got := e.post(t, query, nil); !strings.Contains(got, `"NetworkSpec"`) || strings.Contains(got, `"errors"`) {
		t.Errorf("answer %.300s", got)
	}
}
