package query_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/query"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

// lateKind is a store of which the index cannot read one kind before it was asked for its head a second time: a list
// waits for the kind then.
type lateKind struct {
	*memory.Store
	of      string
	begun   atomic.Bool
	heads   atomic.Int32
	release func()
	ready   chan struct{}
}

func (s *lateKind) Head(ctx context.Context) (backend.Position, error) {
	if s.begun.Load() && s.heads.Add(1) == 2 {
		s.release()
	}
	return s.Store.Position(ctx)
}

func (s *lateKind) Range(ctx context.Context, r backend.Range) (backend.Page, error) {
	if r.Kind == s.of {
		select {
		case <-s.ready:
		case <-ctx.Done():
			return backend.Page{}, ctx.Err()
		}
	}
	return s.Store.Range(ctx, r)
}

// TestListMany_IsOfOneClock: all pages of a call show what had not expired at one time, though the clock moves with
// each look at it, and though one of the kinds comes into memory in the middle of the call.
func TestListMany_IsOfOneClock(t *testing.T) {
	var clock atomic.Int64
	var ticking atomic.Bool
	now := func() time.Time {
		if ticking.Load() {
			clock.Add(1)
		}
		return time.Unix(clock.Load(), 0)
	}
	inner, err := memory.Open(memory.Config{Clock: now})
	store := &lateKind{Store: servicetest.Opened(t, inner, err), of: "Magazine", ready: make(chan struct{})}
	store.release = sync.OnceFunc(func() {
		clock.Add(10) // what expires meanwhile is not read into memory
		close(store.ready)
	})
	kinds := servicetest.Library()
	magazine := kinds[0]
	magazine.Name, magazine.Singular, magazine.Plural, magazine.References = "Magazine", "magazine", "magazines", nil
	g := servicetest.NewGateway(t, store, service.Config{Kinds: append(kinds, magazine)})
	defer g.End()
	defer store.release()
	g.StartIndex()
	const each = 100
	for i := range each {
		for _, of := range []string{"Book", "Magazine"} {
			req := service.CreateRequest{Identity: kind.Identity{Kind: of, Name: fmt.Sprintf("r%03d", i)}, Spec: map[string]any{}}
			req.ExpiresAt = service.ExpiresAt(time.Unix(int64(i+1), 0))
			if _, err := g.Writer.Create(t.Context(), req); err != nil {
				t.Fatal(err)
			}
		}
	}
	for g.Index().Stats().Served < len(kinds) { // all but Magazine
		runtime.Gosched()
	}
	store.begun.Store(true)
	ticking.Store(true)
	pages, errs := g.Reader.ListMany(t.Context(), []query.ListRequest{{Kind: "Book"}, {Kind: "Magazine"}, {Kind: "Book"}})
	ticking.Store(false)
	first := ""
	for i, p := range pages {
		if errs[i] != nil || len(p.Edges) == 0 {
			t.Fatal(i, errs[i])
		}
		name := p.Edges[0].Resource.Stored.Name // the one that expires next
		if first == "" {
			first = name
		}
		if name != first || len(p.Edges) > each {
			t.Errorf("page %d begins with %s, the first one with %s", i, name, first)
		}
	}
	if store.heads.Load() < 2 {
		t.Error("no list has waited for a kind")
	}
}
