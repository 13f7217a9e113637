package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/graph/server"
)

// leaving is a store whose client leaves during a call of it.
type leaving struct {
	rows
	// at is the call during which the client leaves, from 1; 0 is never.
	at      atomic.Int64
	leave   context.CancelFunc
	applied atomic.Int64
}

func (s *leaving) call() {
	if s.at.Add(-1) == 0 {
		s.leave()
	}
}

func (s *leaving) Get(ctx context.Context, keys ...backend.Key) ([]*backend.Resource, error) {
	defer s.call()
	return s.rows.Get(ctx, keys...)
}

func (s *leaving) Range(ctx context.Context, r backend.Range) (backend.Page, error) {
	defer s.call()
	return s.rows.Range(ctx, r)
}

func (s *leaving) Ranges(ctx context.Context, rs []backend.Range) ([]backend.Page, error) {
	defer s.call()
	return s.rows.Ranges(ctx, rs)
}

func (s *leaving) Apply(ctx context.Context, b backend.Batch) (backend.Result, error) {
	defer s.call()
	s.applied.Add(1)
	return s.rows.Apply(ctx, b)
}

// requestUntil is a request of a client that leaves when ctx ends.
func requestUntil(ctx context.Context, t *testing.T, query string) *http.Request {
	t.Helper()
	body, err := json.Marshal(map[string]any{"query": query})
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/graphql", bytes.NewReader(body))
	r.Host = "localhost"
	r.Header.Set("Content-Type", "application/json")
	return r
}

func TestNothingIsReadForAClientThatHasLeft(t *testing.T) {
	store := &leaving{}
	e := newEdge(t, func(s backend.Store) backend.Store {
		store.Store = s
		return store
	}, server.Config{})
	topology(t, e, 10, 3, 3)
	send := func(query string, at int64) string {
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		store.leave = leave
		store.calls.Store(0)
		store.applied.Store(0)
		store.at.Store(at)
		r := requestUntil(ctx, t, query)
		w := httptest.NewRecorder()
		e.ServeHTTP(w, r)
		return w.Body.String()
	}
	mtu := 1400
	change := func() string { // each another one
		mtu++
		return fmt.Sprintf(`upsertNetwork(input: {name: "net-0", spec: {cloudCredentialsRef: {secretName: "s", cloudName: "c"}, resource: {mtu: %d}}}) { network { subnets { nodes { id } } } }`, mtu)
	}
	for _, c := range []struct {
		name, query string
		at          int64
		// beside is how many calls more may have begun with the one during which the client leaves.
		beside int64
	}{
		{"the first level", `{ networks { nodes { subnets { nodes { ports { nodes { id } } } } } } }`, 1, 0},
		{"the second level", `{ networks { nodes { subnets { nodes { ports { nodes { id } } } } } } }`, 2, 0},
		{"references", `{ ports { nodes { network { subnets { nodes { id } } } } } }`, 2, 0},
		{"counts", `{ networks { nodes { subnets(first: 0) { totalCount } } } }`, 2, 0},
		{"counts with a filter", `{ networks { nodes { subnets(first: 0, filter: {name: {ne: "x"}}) { totalCount } } } }`, 2, 0},
		{"a resolver written by hand", `{ dependencyTree(id: "` + kind.GlobalID(backend.Key{Kind: "Network", Namespace: "default", Name: "net-0"}) + `", direction: DEPENDENTS, depth: 3) { dependents { path } } }`, 2, 2},
		{"the last read before the answer is written", `{ a: ports { nodes { ` + aliases(50, "manifest") + `} } }`, 1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := send(c.query, c.at)
			if n := store.calls.Load(); n < c.at || n > c.at+c.beside {
				t.Errorf("%d calls of the store, and the client had left after %d", n, c.at)
			}
			if !strings.Contains(got, `"code":"TIMEOUT"`) || !strings.Contains(got, `"data":null`) || strings.Count(got, `"message"`) != 1 {
				t.Errorf("%.400s", got)
			}
		})
	}
	t.Run("the mutations that come after", func(t *testing.T) {
		send("mutation { a: "+change()+" }", 0)
		calls := store.calls.Load() + store.applied.Load()
		if store.applied.Load() != 1 {
			t.Fatalf("a change is %d batches", store.applied.Load())
		}
		got := send("mutation { a: "+change()+" b: "+change()+" c: "+change()+" }", calls)
		if n := store.applied.Load(); n != 1 || strings.Count(got, "not executed") != 2 || !strings.Contains(got, `"outcome":"APPLIED"`) {
			t.Errorf("%d changes, %s", n, got)
		}
	})
}

// departing is a store whose client leaves when its subscription asks where the log ends.
type departing struct {
	backend.Store
	leave atomic.Pointer[context.CancelFunc]
}

func (s *departing) Position(ctx context.Context) (backend.Position, error) {
	if leave := s.leave.Load(); leave != nil {
		(*leave)()
		<-ctx.Done()
		return backend.Position{}, ctx.Err()
	}
	return s.Store.Position(ctx)
}

func TestAClientThatLeavesBeforeItsSubscriptionBeginsIsNoPanic(t *testing.T) {
	store := &departing{}
	e := newEdge(t, func(s backend.Store) backend.Store {
		store.Store = s
		return store
	}, server.Config{})
	for _, query := range []string{`subscription { networkChanges { type } }`, `subscription { networkChanges(snapshot: true) { type } }`} {
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		store.leave.Store(&leave)
		r := requestUntil(ctx, t, query)
		r.Header.Set("Accept", "text/event-stream")
		e.ServeHTTP(httptest.NewRecorder(), r)
		if ctx.Err() == nil {
			t.Error("the subscription began")
		}
		for _, line := range e.log.All() {
			if line.Level >= zap.ErrorLevel {
				t.Errorf("%s: %s %v", query, line.Message, line.ContextMap())
			}
		}
	}
}
