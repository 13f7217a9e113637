package page_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/query"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

// scanned is a store whose reads of resources wait for a gate, and are counted.
type scanned struct {
	*memory.Store
	mu    sync.Mutex
	reads int
	gate  chan struct{} // nil lets all pass
}

func (s *scanned) pass(rs ...backend.Range) {
	for _, r := range rs {
		if !r.Count && r.Referenced == nil {
			s.mu.Lock()
			s.reads++
			gate := s.gate
			s.mu.Unlock()
			if gate != nil {
				<-gate
			}
			return
		}
	}
}

func (s *scanned) Range(ctx context.Context, r backend.Range) (backend.Page, error) {
	s.pass(r)
	return s.Store.Range(ctx, r)
}

func (s *scanned) Ranges(ctx context.Context, rs []backend.Range) ([]backend.Page, error) {
	s.pass(rs...)
	return s.Store.Ranges(ctx, rs)
}

// setupScanned is a service without an index in memory over a gated store.
func setupScanned(t *testing.T, memory int64) (*servicetest.Fixture, *scanned) {
	t.Helper()
	store := &scanned{Store: servicetest.OpenMemory(t)}
	s, err := service.New(service.Config{Kinds: []descriptor.Kind{servicetest.Widget(), servicetest.Cluster()}, Store: store, IndexMemory: memory})
	if err != nil {
		t.Fatal(err)
	}
	return &servicetest.Fixture{Service: s, T: t, Store: store.Store}, store
}

func heavierThan(n int) map[string]any {
	return map[string]any{"spec": map[string]any{"weight": map[string]any{"gt": n}}}
}

func TestScanner_AScanThatMayNotLookAtAllReadsNothing(t *testing.T) {
	f, store := setupScanned(t, -1)
	for i := range 20 {
		f.CreateWidget(fmt.Sprintf("n%02d", i), `{"title":"A","weight":100}`)
	}
	store.reads = 0
	ctx := budget.With(t.Context(), budget.New(budget.Limits{budget.Rows: 19}))
	for _, req := range []query.ListRequest{
		{Filter: heavierThan(1)}, {OrderBy: []query.Order{{Field: "spec.weight"}}},
	} {
		req.Kind = "Widget"
		_, err := f.Reader.List(ctx, req)
		failed := servicetest.WantCode(t, err, failure.CodeLimitExceeded)
		if store.reads != 0 || failed.Limit != 19 || failed.Setting != "limit-rows" || !strings.Contains(failed.Message, "20 resources") || !strings.Contains(failed.Message, "limit-rows") ||
			!strings.Contains(failed.Message, "index-memory") || strings.Contains(failed.Message, "author") {
			t.Errorf("after %d reads: %v", store.reads, failed)
		}
	}
	if _, err := f.Writer.Create(t.Context(), service.CreateRequest{Identity: kind.Identity{Kind: "Widget", Namespace: servicetest.Pointer("other"), Name: "n"}, Spec: map[string]any{"title": "A", "weight": 100}}); err != nil {
		t.Fatal(err)
	}
	pages, errs := f.Reader.ListMany(ctx, []query.ListRequest{{Kind: "Widget", Filter: heavierThan(1)}, {Kind: "Widget", Namespace: servicetest.Pointer("other"), Filter: heavierThan(1)}})
	if servicetest.WantCode(t, errs[0], failure.CodeLimitExceeded); errs[1] != nil || len(pages[1].Edges) != 1 {
		t.Errorf("a page beside one that is refused: %v", errs[1])
	}
	page, err := f.Reader.List(ctx, query.ListRequest{Kind: "Widget", Namespace: servicetest.Pointer("default"), First: servicetest.Pointer(5)})
	if n, countErr := page.TotalCount(ctx); err != nil || countErr != nil || n != 20 || len(page.Edges) != 5 {
		t.Errorf("a page by name has %d of %d: %v %v", len(page.Edges), n, err, countErr)
	}
}

func TestScanner_TwoScansRunAtOnceAndEqualOnesAreOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, store := setupScanned(t, -1)
		f.CreateWidget("a", `{"title":"A","weight":100}`)
		store.reads, store.gate = 0, make(chan struct{})
		var all sync.WaitGroup
		var mu sync.Mutex
		found, errs := 0, []error{}
		scan := func(n int) {
			all.Go(func() {
				spent := budget.New(budget.Limits{budget.Rows: 100})
				page, err := f.Reader.List(budget.With(t.Context(), spent), query.ListRequest{Kind: "Widget", Filter: heavierThan(n)})
				mu.Lock()
				defer mu.Unlock()
				if err == nil && spent.Spent(budget.Held) == 0 {
					t.Errorf("a page of scan %d is not charged as memory", n)
				}
				if err != nil {
					errs = append(errs, err)
				} else {
					found += len(page.Edges)
				}
			})
		}
		scan(1)
		scan(2)
		synctest.Wait()
		for range 10 {
			scan(3) // these wait, as one
		}
		synctest.Wait()
		if store.reads != 2 {
			t.Errorf("%d scans run", store.reads)
		}
		close(store.gate)
		all.Wait()
		if store.reads != 3 || found != 12 || len(errs) > 0 {
			t.Errorf("%d scans found %d: %v", store.reads, found, errs)
		}

		store.reads, store.gate = 0, make(chan struct{})
		scan(1)
		scan(2)
		synctest.Wait()
		begin := time.Now()
		_, err := f.Reader.List(t.Context(), query.ListRequest{Kind: "Widget", Filter: heavierThan(4)})
		if failed := servicetest.WantCode(t, err, failure.CodeUnavailable); !failed.Retryable || time.Since(begin) != 5*time.Second {
			t.Errorf("after %v: %v", time.Since(begin), failed)
		}
		close(store.gate)
		all.Wait()
	})
}

// TestScanner_ATotalThatIsReadWithThePageAgreesWithIt although the store changes after each read.
func TestScanner_ATotalThatIsReadWithThePageAgreesWithIt(t *testing.T) {
	f := servicetest.Setup(t)
	for i := range 3 {
		f.CreateWidget(fmt.Sprintf("n%d", i), `{"title":"A","weight":100}`)
	}
	store := &servicetest.MovingStore{Store: f.Store}
	s, err := service.New(service.Config{Kinds: []descriptor.Kind{servicetest.Widget(), servicetest.Cluster()}, Store: store, IndexMemory: -1})
	if err != nil {
		t.Fatal(err)
	}
	for i, req := range []query.ListRequest{
		{}, {Filter: heavierThan(1)}, {OrderBy: []query.Order{{Field: "spec.weight"}}}, {Namespace: servicetest.Pointer("default"), Names: []string{"n0", "n1", "gone"}}, {First: servicetest.Pointer(0)}, {First: servicetest.Pointer(1), Filter: heavierThan(1), Ahead: true},
	} {
		req.Kind, req.Total = "Widget", true
		store.Then = func() { f.CreateWidget(fmt.Sprintf("x%d", i), `{"title":"A","weight":100}`) }
		page, err := s.Reader.List(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		want := min(3+i, 6) // what the first three have added
		if req.Names != nil {
			want = 2
		}
		if n, err := page.TotalCount(t.Context()); err != nil || n != want || req.First == nil && n != len(page.Edges) {
			t.Errorf("%d: %d in all, %d on the page, want %d: %v", i, n, len(page.Edges), want, err)
		}
	}
}

// TestScanner_AListWaitsWhileItsKindIsReadIntoMemory and reads nothing itself.
func TestScanner_AListWaitsWhileItsKindIsReadIntoMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, store := setupScanned(t, 0)
		f.CreateWidget("a", `{"title":"A","weight":100}`)
		store.gate = make(chan struct{})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			if err := f.Run(ctx); err != nil {
				t.Error(err)
			}
		}()
		synctest.Wait()
		begin := time.Now()
		_, err := f.Reader.List(t.Context(), query.ListRequest{Kind: "Widget", Filter: heavierThan(1)})
		if failed := servicetest.WantCode(t, err, failure.CodeUnavailable); !failed.Retryable || time.Since(begin) != 5*time.Second {
			t.Errorf("after %v: %v", time.Since(begin), failed)
		}
		if got, err := f.Reader.Get(t.Context(), servicetest.Named("a")); err != nil || got == nil {
			t.Errorf("a single read: %v %v", got, err)
		}
		time.AfterFunc(time.Second, func() { close(store.gate) })
		begin = time.Now()
		page, err := f.Reader.List(t.Context(), query.ListRequest{Kind: "Widget", Filter: heavierThan(1)})
		if err != nil || len(page.Edges) != 1 || time.Since(begin) < time.Second {
			t.Errorf("after %v: %v %v", time.Since(begin), page, err)
		}
		stop()
		<-ended
	})
}

// miscounting is a store that is changed between a page and the count that is read with it.
type miscounting struct {
	*memory.Store
	more int
}

func (s *miscounting) Ranges(ctx context.Context, rs []backend.Range) ([]backend.Page, error) {
	pages, err := s.Store.Ranges(ctx, rs)
	for i := range pages {
		if rs[i].Count {
			pages[i].Count += s.more
		}
	}
	return pages, err
}

func TestScanner_APageThatShowsAllAgreesWithItsCount(t *testing.T) {
	store := &miscounting{Store: servicetest.OpenMemory(t)}
	s, err := service.New(service.Config{Kinds: []descriptor.Kind{servicetest.Widget(), servicetest.Cluster()}, Store: store, IndexMemory: -1})
	if err != nil {
		t.Fatal(err)
	}
	f := &servicetest.Fixture{Service: s, T: t, Store: store.Store}
	const all = 5
	for i := range all {
		f.CreateWidget(fmt.Sprintf("n%d", i), `{"title":"A"}`)
	}
	for _, store.more = range []int{-1, 1} {
		for _, c := range []struct {
			size  int
			ahead bool
			want  int
		}{{10, true, all}, {10, false, all}, {all, true, all}, {all, false, all}, {2, true, all + store.more}} {
			page, err := f.Reader.List(t.Context(), query.ListRequest{Kind: "Widget", First: servicetest.Pointer(c.size), Ahead: c.ahead, Total: true})
			if err != nil {
				t.Fatal(err)
			}
			if n, err := page.TotalCount(t.Context()); err != nil || n != c.want || len(page.Edges) != min(c.size, all) {
				t.Errorf("%+v, %+d: %d of %d resources, %v", c, store.more, len(page.Edges), n, err)
			}
		}
	}
}

func TestScanner_PagesOfOneCallHaveTheirOwnFilters(t *testing.T) {
	f, _ := setupScanned(t, -1)
	for i := range 4 {
		if _, err := f.Writer.Create(t.Context(), service.CreateRequest{Identity: kind.Identity{Kind: "Widget", Name: fmt.Sprint("n", i)}, Spec: map[string]any{"title": "A", "weight": 100 + i}}); err != nil {
			t.Fatal(err)
		}
	}
	one, two := heavierThan(100), heavierThan(101)
	type typed map[string]map[string]map[string]int // is no map[string]any, and so told apart from none and from others
	var reqs []query.ListRequest
	for _, by := range []any{one, typed{"spec": {"weight": {"gt": 102}}}, nil, two, one, typed{"spec": {"weight": {"gt": 101}}}, nil} {
		reqs = append(reqs, query.ListRequest{Kind: "Widget", Filter: by})
	}
	pages, errs := f.Reader.ListMany(t.Context(), reqs)
	for i, want := range []int{3, 1, 4, 2, 3, 2, 4} {
		if errs[i] != nil || len(pages[i].Edges) != want {
			t.Errorf("page %d has %d resources, want %d: %v", i, len(pages[i].Edges), want, errs[i])
		}
	}
}

func TestScanner_AFilterOfALevelIsParsedOnceAlsoIfItIsRefusedOrTheOrdersDiffer(t *testing.T) {
	f, _ := setupScanned(t, -1)
	var conditions []any
	for range 2000 {
		conditions = append(conditions, heavierThan(1))
	}
	valid := map[string]any{"or": conditions[:50]}
	orders := [][]query.Order{nil, {{Field: "spec.weight"}}}
	for name, by := range map[string]map[string]any{"refused": {"or": conditions}, "with two orders": valid} {
		ask := func(pages int) float64 {
			reqs := make([]query.ListRequest, pages)
			for i := range reqs {
				reqs[i] = query.ListRequest{Kind: "Widget", Filter: by, OrderBy: orders[i%2]}
			}
			return testing.AllocsPerRun(1, func() { f.Reader.ListMany(t.Context(), reqs) })
		}
		if one, more := ask(2), ask(202); more-one > 200*200 {
			t.Errorf("%s: 2 pages take %.0f allocations, and 202 take %.0f", name, one, more)
		}
	}
}

func TestScanner_ARunWithManyRowsOfAResourceIsReadOnce(t *testing.T) {
	store := &servicetest.ReadCounter{Store: servicetest.OpenMemory(t)}
	s, err := service.New(service.Config{Kinds: []descriptor.Kind{servicetest.WithConditions(servicetest.Widget())}, Store: store})
	if err != nil {
		t.Fatal(err)
	}
	f := &servicetest.Fixture{Service: s, T: t, Store: store.Store}
	const resources, rows = 4, 1000
	for i := range resources {
		var list []any
		for j := range rows {
			list = append(list, map[string]any{"type": "Ready", "status": fmt.Sprintf("s%04d", j)})
		}
		name := fmt.Sprint("w", i)
		f.CreateWidget(name, `{"title":"A"}`)
		f.Rewrite(name, false, func(body map[string]any) { body["status"] = map[string]any{"conditions": list} })
	}
	store.Resources = 0
	p := f.MustList(query.ListRequest{Kind: "Widget", Filter: map[string]any{"conditions": []any{map[string]any{"type": "Ready"}}}})
	if len(p.Edges) != resources {
		t.Errorf("%d found, want %d", len(p.Edges), resources)
	}
	if most := resources*rows + 600; store.Resources > most {
		t.Errorf("%d rows were read for %d", store.Resources, resources*rows)
	}
}
