package resolvers_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/graph/document"
	"github.com/sluicegw/sluice/graph/transport"
)

const changes = `subscription($ns: String, $name: String, $after: String) {
	networkChanges(namespace: $ns, name: $name, after: $after) { type cursor revision network { metadata { name } } }
}`

func TestAStreamBeginsInSyncAndTellsEveryChange(t *testing.T) {
	g := open(t)
	g.create("default", "before")
	next := g.start(t.Context(), changes, nil)
	if a := next(); a.at("networkChanges.type") != "IN_SYNC" || a.at("networkChanges.network") != nil || a.at("networkChanges.revision") != nil || a.at("networkChanges.cursor") == nil {
		t.Fatalf("first event: %v %v", a.data, a.errors)
	}
	g.create("default", "net-a")
	a := next()
	if a.at("networkChanges.type") != "ADDED" || a.at("networkChanges.network.metadata.name") != "net-a" || a.at("networkChanges.revision") == nil {
		t.Fatalf("second event: %v %v", a.data, a.errors)
	}
	cursor := a.at("networkChanges.cursor")
	g.must(`mutation { deleteNetwork(input: {name: "net-a"}) { state } }`)
	if a := next(); a.at("networkChanges.type") != "DELETED" || a.at("networkChanges.network.metadata.name") != "net-a" {
		t.Fatalf("third event: %v %v", a.data, a.errors)
	}
	resumed := g.start(t.Context(), changes, map[string]any{"after": cursor})
	for i, want := range []string{"DELETED", "IN_SYNC"} {
		if a := resumed(); a.at("networkChanges.type") != want {
			t.Errorf("event %d after the cursor: %v %v, want %s", i, a.data, a.errors, want)
		}
	}
}

func TestAStreamIsNarrowedByNamespaceAndName(t *testing.T) {
	g := open(t)
	next := g.start(t.Context(), changes, map[string]any{"ns": "other", "name": "net-a"})
	next()
	g.create("default", "net-a")
	g.create("other", "net-b")
	g.create("other", "net-a")
	if a := next(); a.at("networkChanges.network.metadata.name") != "net-a" {
		t.Errorf("event: %v %v", a.data, a.errors)
	}
}

func TestNothingIsDecodedThatIsNotSelected(t *testing.T) {
	g := open(t)
	next := g.start(t.Context(), `subscription { resourceChanges { type revision } }`, nil)
	full := g.start(t.Context(), `subscription { resourceChanges(kinds: ["Network"]) { resource { id kind } } }`, nil)
	next()
	full()
	g.create("default", "net-a")
	before := g.decoded.Load()
	if a := next(); a.at("resourceChanges.type") != "ADDED" {
		t.Fatalf("event: %v", a.data)
	}
	if n := g.decoded.Load() - before; n != 0 {
		t.Errorf("%d resources decoded for a listener that selects none", n)
	}
	if a := full(); a.at("resourceChanges.resource.kind") != "Network" || g.decoded.Load() == before {
		t.Errorf("event: %v", a.data)
	}
}

func TestAStreamEndsWithItsContext(t *testing.T) {
	g := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	next := g.start(ctx, changes, nil)
	next()
	cancel()
	if a := next(); a != nil {
		t.Errorf("an event after the end: %v %v", a.data, a.errors)
	}
}

func TestAStreamThatCannotBeginSaysWhy(t *testing.T) {
	g := open(t)
	kinds := make([]any, 101)
	for i := range kinds {
		kinds[i] = "Network"
	}
	for name, c := range map[string]struct {
		query     string
		variables map[string]any
		want      service.Code
	}{
		"a cursor that is none": {changes, map[string]any{"after": "nonsense"}, service.CodeCursorInvalid},
		"a kind that is none":   {`subscription { resourceChanges(kinds: ["Widget"]) { type } }`, nil, service.CodeBadUserInput},
		"too many kinds":        {`subscription($k: [String!]) { resourceChanges(kinds: $k) { type } }`, map[string]any{"k": kinds}, service.CodeValidationFailed},
		"a name that is none":   {changes, map[string]any{"name": "No!"}, service.CodeValidationFailed},
	} {
		t.Run(name, func(t *testing.T) {
			a := g.start(t.Context(), c.query, c.variables)()
			if a == nil || a.code(0) != c.want {
				t.Errorf("%v, want %s", a, c.want)
			}
		})
	}
}

func TestAStreamWhoseStoreClosesEndsWithoutACrash(t *testing.T) {
	g := open(t)
	next := g.start(t.Context(), changes, nil)
	next()
	if err := g.close(); err != nil {
		t.Fatal(err)
	}
	for a := next(); a != nil; a = next() {
		if len(a.errors) == 0 {
			t.Errorf("an event after the store was closed: %v", a.data)
		}
	}
}

// begin starts a subscription as a transport does.
func (g *gateway) begin(query string, variables map[string]any, after string) *transport.Stream {
	g.t.Helper()
	documents, err := document.Open(document.Config{})
	if err != nil {
		g.t.Fatal(err)
	}
	op, errs := transport.NewExecutor(transport.ExecutorConfig{Executor: g.exec, Named: documents}).Prepare(g.t.Context(), &transport.Request{Query: query, Variables: variables})
	if errs != nil {
		g.t.Fatal(errs)
	}
	return op.Stream(g.t.Context(), after)
}

func TestAListenerThatLagsIsToldByTheServersPresenter(t *testing.T) {
	g := open(t)
	g.store.lag = make(chan struct{})
	g.exec.SetErrorPresenter(func(ctx context.Context, err error) *gqlerror.Error {
		e := graphql.DefaultErrorPresenter(ctx, err)
		if known, ok := e.Err.(*service.Error); ok {
			e.Extensions = map[string]any{"code": known.Code, "cursor": known.Cursor}
		}
		return e
	})
	s := g.begin(`subscription { networkChanges { type } }`, nil, "")
	defer s.Close()
	if _, ok := s.Next(); !ok {
		t.Fatal(s.Errors())
	}
	close(g.store.lag)
	if e, ok := s.Next(); ok {
		t.Fatalf("an event after the end: %s", e.Payload)
	}
	errs := s.Errors()
	if len(errs) != 1 || errs[0].Extensions["code"] != service.CodeLagged || errs[0].Extensions["cursor"] == "" {
		t.Errorf("%v", errs)
	}
}

func TestAListenerThatLagsWhereNobodyAsksWhyIsCutOff(t *testing.T) {
	g := open(t)
	g.store.lag = make(chan struct{})
	next := g.start(t.Context(), changes, nil)
	next()
	close(g.store.lag)
	if a := next(); a != nil {
		t.Errorf("an event after the end: %v %v", a.data, a.errors)
	}
}

func TestATransportIsToldTheCursorOfEachEvent(t *testing.T) {
	g := open(t)
	g.create("default", "old")
	const snapshot = `subscription($after: String) { networkChanges(snapshot: true, after: $after) { type cursor } }`
	s := g.begin(snapshot, nil, "")
	defer s.Close()
	read := func(s *transport.Stream, want ...string) (cursor string) {
		t.Helper()
		for _, kind := range want {
			e, ok := s.Next()
			var answer struct {
				Data struct {
					NetworkChanges struct {
						Type   string
						Cursor *string
					}
				}
			}
			if !ok {
				t.Fatalf("no %s: %v", kind, s.Errors())
			}
			if err := json.Unmarshal(e.Payload, &answer); err != nil {
				t.Fatal(err)
			}
			got := answer.Data.NetworkChanges
			if got.Type != kind || (got.Cursor == nil) != (e.Cursor == "") || got.Cursor != nil && *got.Cursor != e.Cursor {
				t.Errorf("%s with the cursor %q, want %s", e.Payload, e.Cursor, kind)
			}
			cursor = e.Cursor
		}
		return cursor
	}
	if cursor := read(s, "RESET", "SNAPSHOT"); cursor != "" {
		t.Errorf("a place to resume from before there is one: %q", cursor)
	}
	cursor := read(s, "IN_SYNC")
	g.create("default", "net-a")
	g.create("default", "net-b")
	after := read(s, "ADDED")
	read(s, "ADDED")

	for name, s := range map[string]*transport.Stream{
		"by the transport, which wins": g.begin(snapshot, map[string]any{"after": cursor}, after),
		"by the argument":              g.begin(snapshot, map[string]any{"after": after}, ""),
	} {
		t.Run(name, func(t *testing.T) {
			defer s.Close()
			read(s, "ADDED", "IN_SYNC")
		})
	}
}
