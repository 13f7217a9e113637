package loader_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/query"
	"github.com/sluicegw/sluice/graph/loader"
)

// fake answers every read with what was asked for, and notes the sizes of batches.
type fake struct {
	mu             sync.Mutex
	lookups, lists []int
	fail           error
	callers        []access.Caller
}

func (f *fake) Lookup(ctx context.Context, keys []backend.Key) ([]*query.Resource, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lookups, f.callers = append(f.lookups, len(keys)), append(f.callers, access.CallerFrom(ctx))
	out := make([]*query.Resource, len(keys))
	for i, key := range keys {
		if key.Kind != keys[0].Kind {
			return nil, errors.New("two kinds in one call")
		}
		if key.Name != "absent" {
			out[i] = &query.Resource{Stored: &backend.Resource{Key: key}}
		}
	}
	return out, f.fail
}

func (f *fake) ListMany(_ context.Context, reqs []query.ListRequest) ([]*query.Page, []error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lists = append(f.lists, len(reqs))
	pages, errs := make([]*query.Page, len(reqs)), make([]error, len(reqs))
	for i, req := range reqs {
		if req.After != nil {
			errs[i] = f.fail
		}
		pages[i] = &query.Page{Edges: []query.Edge{{Resource: query.Resource{Stored: &backend.Resource{Key: req.Parent.Key}}}}}
	}
	return pages, errs
}

var errStore = errors.New("the store is gone")

func key(kind string, i int) backend.Key {
	return backend.Key{Kind: kind, Namespace: "default", Name: fmt.Sprint(i)}
}

// longWait is for reads of one key by several goroutines. They wait for a mutex of dataloader, where the clock of a bubble
// would stand still.
const longWait = time.Second

// together runs n reads at once and returns when all have ended.
func together(n int, read func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { read(i) })
	}
	all.Wait()
}

func TestReadsOfOneKindAreOneCall(t *testing.T) {
	f := &fake{}
	ctx := loader.With(access.WithCaller(t.Context(), access.Caller{Request: "me"}), f, longWait)
	l := loader.From(ctx)
	var wrong atomic.Int64
	together(200, func(i int) {
		want := key([]string{"A", "B"}[i%2], i/4)
		if r, err := l.Resource(ctx, want); err != nil || r.Stored.Key != want {
			wrong.Add(1)
		}
	})
	if wrong.Load() > 0 || len(f.lookups) != 2 || f.lookups[0]+f.lookups[1] != 100 {
		t.Errorf("%d wrong answers, calls of %v keys", wrong.Load(), f.lookups)
	}
	if f.callers[0].Request != "me" {
		t.Errorf("asked as %v", f.callers[0])
	}
}

func TestABatchIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		l := loader.New(f, 0)
		together(2*loader.MaxResources+1, func(i int) { _, _ = l.Resource(t.Context(), key("A", i)) })
		together(loader.MaxPages+1, func(i int) {
			_, _ = l.Page(t.Context(), query.ListRequest{Kind: "A", Parent: query.Parent{Key: key("B", i)}})
		})
		if len(f.lookups) != 3 || f.lookups[0] > loader.MaxResources || len(f.lists) != 2 || f.lists[0] > loader.MaxPages {
			t.Errorf("calls of %v keys and %v pages", f.lookups, f.lists)
		}
	})
}

func TestPagesAreToldApartByEveryArgument(t *testing.T) {
	f := &fake{fail: errStore}
	l := loader.New(f, longWait)
	together(40, func(i int) {
		req := query.ListRequest{Kind: "A", First: new(i % 2), Filter: map[string]int{"x": i / 20}, Parent: query.Parent{Key: key("B", i%10/2)}}
		p, err := l.Page(t.Context(), req)
		if err != nil || p.Edges[0].Resource.Stored.Key != req.Parent.Key {
			t.Errorf("page of %v: %v", req.Parent.Key, err)
		}
	})
	if len(f.lists) != 1 || f.lists[0] != 20 {
		t.Errorf("calls of %v pages, want one of 20", f.lists)
	}
	if _, err := l.Page(t.Context(), query.ListRequest{Kind: "A", After: new("x"), Parent: query.Parent{}}); !errors.Is(err, errStore) {
		t.Errorf("a page's own error: %v", err)
	}
}

func TestEachResponseReadsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		for n := 1; n <= 2; n++ {
			ctx := loader.With(t.Context(), f, 0)
			for range 2 {
				if _, err := loader.From(ctx).Resource(ctx, key("A", 1)); err != nil {
					t.Error(err)
				}
			}
			if len(f.lookups) != n {
				t.Errorf("read %d times for %d responses", len(f.lookups), n)
			}
		}
		if loader.From(t.Context()) != nil {
			t.Error("loaders from nowhere")
		}
	})
}

func TestSeveralResourcesAreInTheOrderOfTheirKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		l := loader.New(f, 0)
		keys := []backend.Key{key("A", 2), key("B", 1), {Kind: "A", Name: "absent"}, key("A", 2)}
		found, err := l.Resources(t.Context(), keys)
		if err != nil || found[0].Stored.Key != keys[0] || found[1].Stored.Key != keys[1] || found[2] != nil || found[3].Stored.Key != keys[0] {
			t.Errorf("%v, %v", found, err)
		}
		if len(f.lookups) != 2 {
			t.Errorf("%d calls, want one for each kind", len(f.lookups))
		}
	})
}

func TestAFailedReadFailsForAllThatWaitedForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := loader.New(&fake{fail: errStore}, 0)
		together(3, func(i int) {
			if r, err := l.Resource(t.Context(), key("A", i)); !errors.Is(err, errStore) || r != nil {
				t.Errorf("%v, %v", r, err)
			}
		})
		if _, err := l.Resources(t.Context(), []backend.Key{key("A", 1)}); !errors.Is(err, errStore) {
			t.Errorf("of several: %v", err)
		}
	})
}

// broken panics.
type broken struct{ fake }

func (b *broken) Lookup(context.Context, []backend.Key) ([]*query.Resource, error) {
	panic("broken")
}

func TestNobodyWaitsForAReadThatPanicked(t *testing.T) {
	log.SetOutput(io.Discard) // dataloader tells the panic there
	defer log.SetOutput(os.Stderr)
	synctest.Test(t, func(t *testing.T) {
		l := loader.New(&broken{}, 0)
		if _, err := l.Resource(t.Context(), key("A", 1)); err == nil {
			t.Error("no error")
		}
	})
}

func TestWaitingEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := loader.New(&fake{}, 0).Resource(ctx, key("A", 1)); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}
