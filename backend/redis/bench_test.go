package redis_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/redis"
	"github.com/sluicegw/sluice/internal/redistest"
)

// What the benchmarks store: resources of about 600 bytes.
const (
	benchResources = 100_000
	benchParallel  = 25 // connections for each of GOMAXPROCS
)

// benchServer is one server with a store on it, and a plain client beside.
type benchServer struct {
	server *redistest.Server
	client *goredis.Client
	store  *redis.Store
	names  atomic.Int64
}

func newBenchServer(b *testing.B) *benchServer {
	s := redistest.Start(b)
	opt, err := goredis.ParseURL(s.URL())
	if err != nil {
		b.Fatal(err)
	}
	opt.PoolSize = 64
	client := goredis.NewClient(opt)
	store, err := redis.Open(b.Context(), redis.Config{URL: s.URL()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _, _ = store.Close(), client.Close() })
	return &benchServer{server: s, client: client, store: store}
}

// info is a number of the server's own account of itself.
func (s *benchServer) info(b *testing.B, section, field string) float64 {
	text, err := s.client.Info(context.Background(), section).Result()
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(text) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), field+":"); ok {
			f, _ := strconv.ParseFloat(v, 64)
			return f
		}
	}
	b.Fatalf("no %s", field)
	return 0
}

func (s *benchServer) cpu(b *testing.B) float64 {
	return s.info(b, "cpu", "used_cpu_user") + s.info(b, "cpu", "used_cpu_sys")
}

// parallel runs one operation on many connections, and reports what it costs the server.
func (s *benchServer) parallel(b *testing.B, name string, op func(i int64) error) {
	b.Run(name, func(b *testing.B) {
		var n atomic.Int64
		before := s.cpu(b)
		b.SetParallelism(benchParallel)
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if err := op(n.Add(1)); err != nil {
					b.Error(err)
					return
				}
			}
		})
		b.ReportMetric((s.cpu(b)-before)*1e6/float64(b.N), "server-us/op")
	})
}

// alone runs one operation at a time and reports its median, and what it costs the server.
func (s *benchServer) alone(b *testing.B, name string, op func(i int) error) {
	b.Run(name, func(b *testing.B) {
		before := s.cpu(b)
		took := make([]time.Duration, b.N)
		for i := range b.N {
			begin := time.Now()
			if err := op(i); err != nil {
				b.Fatal(err)
			}
			took[i] = time.Since(begin)
		}
		b.ReportMetric((s.cpu(b)-before)*1e6/float64(b.N), "server-us/op")
		b.ReportMetric(median(took), "p50-us")
	})
}

func benchKey(i int64) backend.Key {
	return backend.Key{Kind: "Network", Namespace: "default", Name: fmt.Sprintf("network-%06d", i)}
}

func benchPut(i, round int64) backend.Action {
	return backend.Action{Key: benchKey(i), Op: backend.OpPut, Put: backend.Put{
		UID: "0190163d-8694-739b-aea5-966c26f8ad90", Caller: true,
		Body: backend.EncodeBody(bytes.Repeat([]byte{'a' + byte((i+round)%26)}, 560)),
	}}
}

// benchRefs is benchPut with two references, of which one is bound.
func benchRefs(i, round int64) backend.Action {
	a := benchPut(i, round)
	a.Key.Kind, a.Put.Declared = "Subnet", "01234567"
	a.Put.Refs = []backend.Ref{{Key: benchKey(i % 1000), Bound: true}, {Key: benchKey(1000 + i%777)}}
	return a
}

func (s *benchServer) apply(actions ...backend.Action) (backend.Result, error) {
	return s.store.Apply(context.Background(), backend.Batch{
		RequestID: "0190163d-8694-739b-aea5-966c26f8ad90", Deadline: s.store.Now().Add(time.Minute), Actions: actions,
	})
}

// fill stores the resources of the benchmarks.
func (s *benchServer) fill(b *testing.B, put func(i, round int64) backend.Action) {
	for i := int64(0); i < benchResources; i += 64 {
		var batch []backend.Action
		for j := i; j < min(i+64, benchResources); j++ {
			batch = append(batch, put(j, 0))
		}
		if _, err := s.apply(batch...); err != nil {
			b.Fatal(err)
		}
	}
	s.names.Store(benchResources)
}

// memory reports what a resource and a retained event take.
func (s *benchServer) memory(b *testing.B, name string, before float64) {
	b.Run(name, func(b *testing.B) {
		for range b.N {
			all := s.info(b, "memory", "used_memory")
			log := float64(s.client.MemoryUsage(b.Context(), "sluice:c:{0}", 0).Val())
			events := float64(s.client.XLen(b.Context(), "sluice:c:{0}").Val())
			b.ReportMetric((all-before-log)/benchResources, "B/resource")
			b.ReportMetric(log/events, "B/event")
		}
		b.ReportMetric(0, "ns/op")
	})
}

// The memory of resources with references, and of the log of their changes.
func BenchmarkRedisReferences(b *testing.B) {
	s := newBenchServer(b)
	before := s.info(b, "memory", "used_memory")
	s.fill(b, benchRefs)
	s.memory(b, "memory", before)
	s.parallel(b, "update", func(i int64) error {
		_, err := s.apply(benchRefs(i%benchResources, i))
		return err
	})
}

func BenchmarkRedis(b *testing.B) {
	ctx := context.Background()
	s := newBenchServer(b)
	before := s.info(b, "memory", "used_memory")
	s.fill(b, benchPut)
	s.memory(b, "memory", before)
	value := strings.Repeat("x", 600)
	s.parallel(b, "SET", func(i int64) error { return s.client.Set(ctx, fmt.Sprint("set:", i%benchResources), value, 0).Err() })
	s.parallel(b, "XADD", func(int64) error {
		return s.client.XAdd(ctx, &goredis.XAddArgs{Stream: "xadd", MaxLen: benchResources, Approx: true, Values: []string{"d", value}}).Err()
	})
	s.parallel(b, "update", func(i int64) error {
		a := benchPut(i%benchResources, i)
		a.If = backend.Condition{Presence: backend.Present, UID: a.Put.UID}
		_, err := s.apply(a)
		return err
	})
	s.parallel(b, "create", func(int64) error {
		a := benchPut(s.names.Add(1), 0)
		a.If = backend.Condition{Presence: backend.Absent}
		_, err := s.apply(a)
		return err
	})
	s.alone(b, "PING", func(int) error { return s.client.Ping(ctx).Err() })
	b.Run("PING after silence", func(b *testing.B) {
		took := make([]time.Duration, b.N)
		for i := range b.N {
			silence(b)
			begin := time.Now()
			if err := s.client.Ping(ctx).Err(); err != nil {
				b.Fatal(err)
			}
			took[i] = time.Since(begin)
		}
		b.ReportMetric(median(took), "p50-us")
	})
	if err := s.client.Set(ctx, "set:1", value, 0).Err(); err != nil {
		b.Fatal(err)
	}
	s.alone(b, "GET", func(i int) error { return s.client.Get(ctx, "set:1").Err() })
	s.alone(b, "MGET of 100", func(i int) error {
		keys := make([]string, 100)
		for j := range keys {
			keys[j] = fmt.Sprint("set:", (i*7919+j*101)%benchResources)
		}
		return s.client.MGet(ctx, keys...).Err()
	})
	s.alone(b, "page of 100", func(i int) error {
		k := benchKey(int64(i*7919) % (benchResources - 100))
		p, err := s.store.Range(ctx, backend.Range{Kind: "Network", Start: backend.OrderTuple(k.Namespace, k.Name), Limit: 100})
		if err == nil && len(p.Resources) != 100 {
			err = fmt.Errorf("%d resources", len(p.Resources))
		}
		return err
	})
	s.relay(b)
}

// relay measures from a write to its delivery, on an idle server.
func (s *benchServer) relay(b *testing.B) {
	w, err := s.store.Watch(b.Context(), backend.Watch{})
	if err != nil {
		b.Fatal(err)
	}
	defer w.Close()
	if _, err := w.Next(b.Context()); err != nil {
		b.Fatal(err)
	}
	type arrival struct {
		at  time.Time
		err error
	}
	arrivals := make(chan arrival)
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	go func() {
		for {
			_, err := w.Next(ctx)
			select {
			case arrivals <- arrival{time.Now(), err}:
			case <-ctx.Done():
				return
			}
		}
	}()
	b.Run("write to watcher", func(b *testing.B) {
		seen, written := make([]time.Duration, b.N), make([]time.Duration, b.N)
		for i := range b.N {
			silence(b)
			begin := time.Now()
			if _, err := s.apply(benchPut(int64(i), 1)); err != nil {
				b.Fatal(err)
			}
			written[i] = time.Since(begin)
			a := <-arrivals
			if a.err != nil {
				b.Fatal(a.err)
			}
			seen[i] = a.at.Sub(begin)
		}
		b.ReportMetric(median(seen), "p50-us")
		b.ReportMetric(median(written), "write-p50-us")
	})
}

// silence lets the machine rest past a watcher's linger, so that it waits on the server again.
func silence(b *testing.B) {
	b.StopTimer()
	quiet := time.NewTimer(3 * time.Millisecond)
	<-quiet.C
	b.StartTimer()
}

// median in microseconds.
func median(took []time.Duration) float64 {
	slices.Sort(took)
	return float64(took[len(took)/2]) / 1e3
}
