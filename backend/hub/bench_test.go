package hub_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/hub"
	"github.com/sluicegw/sluice/internal/heaptest"
)

// source is a store whose one watch delivers what the benchmark says.
type source struct {
	backend.Store
	at        backend.Revision
	deliver   chan backend.Delivery
	delivered chan struct{}
}

func (s *source) Position(context.Context) (backend.Position, error) {
	return backend.NewPosition(s.at), nil
}

func (s *source) Watch(context.Context, backend.Watch) (backend.Watcher, error) { return s, nil }

func (s *source) Close() {}

func (s *source) Next(ctx context.Context) (backend.Delivery, error) {
	select {
	case s.delivered <- struct{}{}: // what was given last is published
	case <-ctx.Done():
		return backend.Delivery{}, ctx.Err()
	}
	select {
	case d := <-s.deliver:
		return d, nil
	case <-ctx.Done():
		return backend.Delivery{}, ctx.Err()
	}
}

// BenchmarkPublish is one event to many subscribers that wait in Next: until all
// who cover it have it, and until the hub could take the next where nobody does.
// The bytes are those of an idle subscriber without its goroutine.
func BenchmarkPublish(b *testing.B) {
	for _, covered := range []bool{false, true} {
		for _, n := range []int{10, 1_000, 10_000} {
			b.Run(fmt.Sprintf("covered=%v/subscribers=%d", covered, n), func(b *testing.B) { publish(b, n, covered) })
		}
	}
}

func publish(b *testing.B, n int, covered bool) {
	s := &source{at: backend.Revision{Epoch: 1, Seq: 1}, deliver: make(chan backend.Delivery), delivered: make(chan struct{})}
	h, err := hub.New(hub.Config{Store: s})
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(b.Context())
	ran := make(chan error, 1)
	go func() { ran <- h.Run(ctx) }()
	<-s.delivered
	kind := "Other"
	if covered {
		kind = "Net"
	}
	before := heaptest.InUse()
	watchers := make([]*hub.Watcher, n)
	for i := range watchers {
		w, err := h.Watch(ctx, hub.Watch{Covers: func(k backend.Key) bool { return k.Kind == kind }})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := w.Next(ctx); err != nil {
			b.Fatal(err)
		}
		watchers[i] = w
	}
	each := float64(heaptest.InUse()-before) / float64(n)
	var got, ended sync.WaitGroup
	for _, w := range watchers {
		ended.Go(func() {
			for {
				if _, err := w.Next(ctx); err != nil {
					return
				}
				got.Done()
			}
		})
	}
	b.ResetTimer()
	for b.Loop() {
		s.at.Seq++
		e := backend.Event{Type: backend.Added, Revision: s.at, Resource: &backend.Resource{Key: key("default", "a")}, Position: backend.NewPosition(s.at)}
		if covered {
			got.Add(n)
		}
		s.deliver <- backend.Delivery{Events: []backend.Event{e}, Position: e.Position}
		<-s.delivered
		got.Wait()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/delivery")
	b.ReportMetric(each, "B/subscriber")
	stop()
	ended.Wait()
	if err := <-ran; err != nil {
		b.Fatal(err)
	}
	for _, w := range watchers {
		w.Close()
	}
}
