package service_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/bolt"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/hub"
	"github.com/sluicegw/sluice/backend/redis"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/query"
	"github.com/sluicegw/sluice/backend/service/servicetest"
	"github.com/sluicegw/sluice/internal/redistest"
)

// BenchmarkRefill measures how long it takes until filtered lists are answered, by the number of
// resources (SLUICE_BENCH_SIZES): after a start, after a fail-over of Redis that lost writes, and
// from a catalogue with another filterable field, while the one before is read. Each is done once.
func BenchmarkRefill(b *testing.B) {
	sizes := "10000"
	if s := os.Getenv("SLUICE_BENCH_SIZES"); s != "" {
		sizes = s
	}
	for _, size := range strings.Split(sizes, ",") {
		n, err := strconv.Atoi(size)
		if err != nil {
			b.Fatal(err)
		}
		b.Run("bolt/"+size, func(b *testing.B) { refillBolt(b, n) })
		b.Run("redis/"+size, func(b *testing.B) { refillRedis(b, n) })
	}
}

// refilling is a store of many widgets, and what follows it.
type refilling struct {
	*testing.B
	store interface {
		backend.Store
		backend.Clock
	}
	hub *hub.Hub
	ids int
}

// write puts widgets, from one number to another.
func (r *refilling) write(from, to int) {
	r.Helper()
	for from < to {
		batch := backend.Batch{RequestID: fmt.Sprint("b", r.ids), Deadline: r.store.Now().Add(time.Minute)}
		r.ids++
		for ; from < to && len(batch.Actions) < backend.MaxWrites; from++ {
			body := fmt.Sprintf(`{"metadata":{"description":"%s","labels":{"env":"prod","team":"t%d"}},"spec":{"title":"t%d"}}`, strings.Repeat("x", 400), from%50, from%10)
			batch.Actions = append(batch.Actions, backend.Action{
				Key: backend.Key{Kind: "Widget", Namespace: "main", Name: fmt.Sprint("w", from)}, Op: backend.OpPut,
				Put: backend.Put{UID: fmt.Sprint("u", from), Body: backend.EncodeBody([]byte(body)), Caller: true},
			})
		}
		if _, err := r.store.Apply(r.Context(), batch); err != nil {
			r.Fatal(err)
		}
	}
}

// run runs something until stop is called.
func (r *refilling) run(run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var ran sync.WaitGroup
	ran.Go(func() {
		if err := run(ctx); err != nil {
			r.Error(err)
		}
	})
	stop = sync.OnceFunc(func() { cancel(); ran.Wait() })
	r.Cleanup(stop)
	return stop
}

func (r *refilling) service(kind descriptor.Kind) *service.Service {
	r.Helper()
	if r.hub == nil {
		var err error
		if r.hub, err = hub.New(hub.Config{Store: r.store}); err != nil {
			r.Fatal(err)
		}
		r.run(r.hub.Run)
	}
	s, err := service.New(service.Config{Kinds: []descriptor.Kind{kind, servicetest.Cluster()}, Store: r.store, Hub: r.hub, IndexMemory: 8 << 30})
	if err != nil {
		r.Fatal(err)
	}
	return s
}

// filled returns once all is in memory.
func (r *refilling) filled(s *service.Service) {
	r.Helper()
	if err := s.Index().Filled(r.Context()); err != nil {
		r.Fatal(err)
	}
	r.listed(s)
}

// listed lists by a filter until that is answered.
func (r *refilling) listed(s *service.Service) {
	r.Helper()
	for {
		if _, err := s.Reader.List(r.Context(), lists("t1")); err == nil {
			return
		} else if ctx := r.Context(); ctx.Err() != nil {
			r.Fatal(err)
		}
	}
}

func lists(title string) query.ListRequest {
	first := 10
	return query.ListRequest{Kind: "Widget", First: &first, Filter: map[string]any{"spec": map[string]any{"title": map[string]any{"eq": title}}}}
}

// took reports what a step took, in seconds.
func (r *refilling) took(what string, begin time.Time) {
	r.ReportMetric(time.Since(begin).Seconds(), what+"-s")
}

func refillBolt(b *testing.B, n int) {
	r := &refilling{B: b}
	path := filepath.Join(b.TempDir(), "sluice.db")
	open := func() *bolt.Store {
		s, err := bolt.Open(bolt.Config{Path: path, LogEntries: 1000})
		if err != nil {
			b.Fatal(err)
		}
		r.store, r.hub = s, nil
		return s
	}
	s := open()
	r.write(0, n)
	crashed := path + ".crashed" // as kill -9 leaves the file
	if err := copyFile(crashed, path); err != nil {
		b.Fatal(err)
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	start := func(how string) (svc *service.Service, stop func()) {
		begin := time.Now()
		s := open()
		svc = r.service(servicetest.Widget())
		if _, err := svc.Reader.Get(b.Context(), servicetest.Named("none")); err != nil {
			b.Fatal(err)
		}
		r.took(how+"-first-answer", begin)
		ended := r.run(svc.Run)
		r.filled(svc)
		r.took(how+"-filled", begin)
		return svc, func() {
			ended()
			if err := s.Close(); err != nil {
				b.Error(err)
			}
		}
	}
	_, stop := start("orderly")
	stop()
	path = crashed
	svc, stop := start("killed")
	defer stop()
	other := servicetest.Widget()
	other.FilterableFields = append(other.FilterableFields, descriptor.FilterableField{Path: "spec.every", Sortable: true})
	r.reload(svc, other)
}

// reload fills another index beside one that is read.
func (r *refilling) reload(svc *service.Service, kind descriptor.Kind) {
	next := r.service(kind)
	var worst time.Duration
	reads := 0
	reading, stop := context.WithCancel(context.Background())
	var read sync.WaitGroup
	read.Go(func() {
		for reading.Err() == nil {
			begin := time.Now()
			if _, err := svc.Reader.List(context.Background(), lists(fmt.Sprint("t", reads%10))); err != nil {
				r.Error(err)
			}
			worst = max(worst, time.Since(begin))
			reads++
		}
	})
	begin := time.Now()
	ended := r.run(next.Index().Run)
	r.filled(next)
	r.took("reload", begin)
	stop()
	read.Wait()
	r.ReportMetric(float64(reads), "reads-meanwhile")
	r.ReportMetric(worst.Seconds()*1000, "worst-read-ms")
	ended()
}

func copyFile(to, from string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

func refillRedis(b *testing.B, n int) {
	server := redistest.Start(b)
	s, err := redis.Open(b.Context(), redis.Config{URL: server.URL(), LogEntries: 100_000})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	r := &refilling{B: b, store: s}
	r.write(0, n)
	svc := r.service(servicetest.Widget())
	begin := time.Now()
	r.run(svc.Run)
	r.filled(svc)
	r.took("filled", begin)
	for _, c := range []struct {
		says   string
		writes int // that are lost
	}{{"known", 1000}, {"compared", 70_000}} { // beyond the keys that are remembered
		server.Do("SAVE")
		r.write(0, min(c.writes, n))
		r.write(0, c.writes-min(c.writes, n)) // once more, if there are not as many
		r.listed(svc)
		server.Kill()
		server.Restart() // it answers once it has loaded the file
		begin := time.Now()
		redistest.Await(b, "the store", func() error {
			_, err := s.Position(b.Context())
			return err
		})
		r.took(c.says+"-store", begin)
		r.listed(svc)
		r.took(c.says+"-filled", begin)
	}
}
