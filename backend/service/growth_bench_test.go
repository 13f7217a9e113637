package service_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/bolt"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/redis"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/query"
	"github.com/sluicegw/sluice/backend/service/servicetest"
	"github.com/sluicegw/sluice/internal/redistest"
)

// BenchmarkGrowth measures what reads cost by the number of resources, from the index
// and from the store: SLUICE_BENCH_SIZES names the numbers.
func BenchmarkGrowth(b *testing.B) {
	sizes := "1000,10000"
	if s := os.Getenv("SLUICE_BENCH_SIZES"); s != "" {
		sizes = s
	}
	for _, store := range []string{"memory", "bolt", "redis"} {
		for _, size := range strings.Split(sizes, ",") {
			n, err := strconv.Atoi(size)
			if err != nil {
				b.Fatal(err)
			}
			b.Run(fmt.Sprint(store, "/", n), func(b *testing.B) { benchGrowth(b, store, n) })
		}
	}
}

func benchGrowth(b *testing.B, on string, n int) {
	var store backend.Store
	switch on {
	case "redis":
		s, err := redis.Open(b.Context(), redis.Config{URL: redistest.Start(b).URL(), LogEntries: 1000})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = s.Close() })
		store = s
	case "bolt":
		s, err := bolt.Open(bolt.Config{Path: filepath.Join(b.TempDir(), "sluice.db"), LogEntries: 1000})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = s.Close() })
		store = s
	default:
		s, err := memory.Open(memory.Config{LogEntries: 1000})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = s.Close() })
		store = s
	}
	open := func(indexMemory int64) *service.Service {
		s, err := service.New(service.Config{Kinds: []descriptor.Kind{servicetest.Widget(), servicetest.Cluster()}, Store: store, IndexMemory: indexMemory})
		if err != nil {
			b.Fatal(err)
		}
		return s
	}
	plain := open(-1)
	grow(b, plain, n)
	for _, op := range growing(plain, n) {
		b.Run("store/"+op.name, op.bench)
	}
	indexed := open(8 << 30)
	fillIndex(b, indexed, n)
	for _, op := range growing(indexed, n) {
		b.Run("index/"+op.name, op.bench)
	}
}

// fillIndex runs a service until its index is filled, and reports what that takes a resource:
// time, the growth of the heap, and the bytes that the index counts.
func fillIndex(b *testing.B, s *service.Service, n int) {
	b.Helper()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	began := time.Now()
	go func() { ended <- s.Run(ctx) }()
	b.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	})
	if err := s.Index().Filled(ctx); err != nil {
		b.Fatal(err)
	}
	took := time.Since(began)
	for last := uint64(0); last == 0 || after.HeapAlloc < last; { // until the service has evaluated what it found
		last = after.HeapAlloc
		time.Sleep(time.Second)
		runtime.GC()
		runtime.ReadMemStats(&after)
	}
	b.Run("index/fill", func(b *testing.B) {
		b.ReportMetric(float64(took.Nanoseconds())/float64(n), "ns/resource")
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(n), "B/resource")
		b.ReportMetric(float64(after.HeapObjects-before.HeapObjects)/float64(n), "objects/resource")
		b.ReportMetric(float64(s.Index().Stats().Bytes)/float64(n), "counted-B/resource")
	})
}

// grow stores n widgets: half of them with the title "big", five "small", one "one", and
// one in a thousand in another namespace.
func grow(b *testing.B, s *service.Service, n int) {
	b.Helper()
	var wg sync.WaitGroup
	work := make(chan int)
	for range 64 {
		wg.Go(func() {
			for i := range work {
				ns, title, env := "main", fmt.Sprint("t", i%10), "prod"
				if i%1000 == 7 {
					ns = "other"
				}
				switch {
				case i%2 == 0:
					title = "big"
				case i < 10:
					title = "small"
				case i == 11:
					title = "one"
				}
				if i%2 == 1 {
					env = "test"
				}
				labels := []service.Label{{Key: "env", Value: env}, {Key: "id", Value: fmt.Sprint("id-", i)}}
				_, err := s.Writer.Create(context.Background(), service.CreateRequest{
					Identity: kind.Identity{Kind: "Widget", Namespace: &ns, Name: fmt.Sprintf("w-%07d", i)},
					Metadata: service.Metadata{Labels: service.Optional[[]service.Label]{Set: true, Value: labels}},
					Spec:     map[string]any{"title": title, "weight": 100 + i%9000, "bytes": i, "notes": map[string]any{"abc": "xxxxx"}},
				})
				if err != nil {
					b.Error(err)
				}
			}
		})
	}
	for i := range n {
		work <- i
	}
	close(work)
	wg.Wait()
}

// growingRead is a read whose cost should not grow.
type growingRead struct {
	name string
	run  func() error
}

func (r growingRead) bench(b *testing.B) {
	if err := r.run(); err != nil {
		b.Skip(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := r.run(); err != nil {
			b.Fatal(err)
		}
	}
}

func growing(s *service.Service, n int) []growingRead {
	ctx, ns := context.Background(), "main"
	list := func(req query.ListRequest, want int, counted ...bool) func() error {
		req.Kind = "Widget"
		return func() error {
			p, err := s.Reader.List(ctx, req)
			if err == nil && want >= 0 && len(p.Edges) != want {
				err = fmt.Errorf("%d found, want %d", len(p.Edges), want)
			}
			if err == nil && len(counted) > 0 {
				_, err = p.TotalCount(ctx)
			}
			return err
		}
	}
	summary := func(by ...string) func() error {
		return func() error {
			_, err := s.Reader.Summary(ctx, query.SummaryRequest{Kind: "Widget", By: by})
			return err
		}
	}
	spec := func(field, op string, v any) map[string]any {
		return map[string]any{"spec": map[string]any{field: map[string]any{op: v}}}
	}
	label := func(key, op string, v any) []any { return []any{map[string]any{"key": key, op: v}} }
	labels := func(key, op string, v any) map[string]any { return map[string]any{"labels": label(key, op, v)} }
	order := func(f string, d bool) []query.Order { return []query.Order{{Field: f, Descending: d}} }
	first := func(i int) *int { return &i }
	middle := func() *string {
		p, err := s.Reader.List(ctx, query.ListRequest{Kind: "Widget", Namespace: &ns, First: first(1), Filter: map[string]any{"name": map[string]any{"gte": fmt.Sprintf("w-%07d", n/2)}}})
		if err != nil || len(p.Edges) == 0 {
			return nil
		}
		return new(p.Cursor(0))
	}()
	return []growingRead{
		{"get", func() error {
			r, err := s.Reader.Get(ctx, kind.Identity{Kind: "Widget", Namespace: &ns, Name: fmt.Sprintf("w-%07d", n/2)})
			if err == nil && r == nil {
				err = errors.New("it is not there")
			}
			return err
		}},
		{"first-50-of-a-namespace", list(query.ListRequest{Namespace: &ns, First: first(50)}, 50)},
		{"first-50-of-all", list(query.ListRequest{First: first(50)}, 50)},
		{"50-after-the-middle", list(query.ListRequest{Namespace: &ns, First: first(50), Filter: map[string]any{"name": map[string]any{"gte": fmt.Sprintf("w-%07d", n/2)}}, After: middle}, 50)},
		{"last-50", list(query.ListRequest{Namespace: &ns, Last: first(50)}, 50)},
		{"label-1-match", list(query.ListRequest{Filter: labels("id", "eq", fmt.Sprint("id-", n/2))}, 1)},
		{"field-eq-1-match", list(query.ListRequest{Filter: spec("title", "eq", "one")}, 1)},
		{"broad-label-and-field-with-1-match", list(query.ListRequest{Filter: map[string]any{"labels": label("env", "eq", "test"), "spec": spec("title", "eq", "one")["spec"]}}, 1)},
		{"field-in-6-matches", list(query.ListRequest{Filter: spec("title", "in", []any{"one", "small"})}, 6)},
		{"label-in-2-matches", list(query.ListRequest{Filter: labels("id", "in", []any{"id-3", "id-5"})}, 2)},
		{"two-sided-range", list(query.ListRequest{First: first(50), Filter: map[string]any{"spec": map[string]any{"weight": map[string]any{"gte": 100, "lte": 100}}}}, -1)},
		{"name-eq", list(query.ListRequest{Filter: map[string]any{"name": map[string]any{"eq": "w-0000003"}}}, 1)},
		{"namespace-eq-1-in-1000", list(query.ListRequest{Filter: map[string]any{"namespace": map[string]any{"eq": "other"}}}, -1)},
		{"starts-with-in-an-empty-namespace", list(query.ListRequest{Namespace: new("none"), Filter: spec("title", "startsWith", "b")}, 0)},
		{"or-of-two-6-matches", list(query.ListRequest{Filter: map[string]any{"or": []any{spec("title", "eq", "one"), spec("title", "eq", "small")}}}, 6)},
		{"created-after-no-match", list(query.ListRequest{Filter: map[string]any{"createdAt": map[string]any{"gt": "2100-01-01T00:00:00Z"}}}, 0)},
		{"newest-50", list(query.ListRequest{First: first(50), OrderBy: order("createdAt", true)}, 50)},
		{"newest-50-of-a-label", list(query.ListRequest{First: first(50), OrderBy: order("createdAt", true), Filter: labels("env", "eq", "prod")}, 50)},
		{"50-by-weight", list(query.ListRequest{First: first(50), OrderBy: order("spec.weight", false)}, 50)},
		{"50-by-title-descending", list(query.ListRequest{First: first(50), OrderBy: order("spec.title", true)}, 50)},
		{"50-by-name-descending", list(query.ListRequest{Namespace: &ns, First: first(50), OrderBy: order("name", true)}, 50)},
		{"label-and-field", list(query.ListRequest{Filter: map[string]any{"labels": label("env", "eq", "test"), "spec": spec("title", "contains", "zzz")["spec"]}}, 0)},
		{"count", list(query.ListRequest{First: first(0)}, 0, true)},
		{"summary-by-a-field", summary("spec.title")},
		{"summary-by-two", summary("spec.title", "labels.env")},
		{"count-of-a-label", list(query.ListRequest{First: first(0), Filter: labels("env", "eq", "prod")}, 0, true)},
	}
}
