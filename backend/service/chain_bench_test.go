package service_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/bolt"
	"github.com/sluicegw/sluice/backend/redis"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/dependency"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/servicetest"
	"github.com/sluicegw/sluice/internal/redistest"
)

// BenchmarkChain creates a chain of 50 resources of which each waits for the one before,
// in its order and in reverse, until the last is ready.
func BenchmarkChain(b *testing.B) {
	stores := map[string]func(b *testing.B) (backend.Store, error){
		"bolt": func(b *testing.B) (backend.Store, error) { return bolt.Open(bolt.Config{Path: b.TempDir() + "/store"}) },
		"redis": func(b *testing.B) (backend.Store, error) {
			return redis.Open(b.Context(), redis.Config{URL: redistest.Start(b).URL()})
		},
	}
	for _, name := range []string{"bolt", "redis"} {
		for _, reverse := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/reverse=%v", name, reverse), func(b *testing.B) {
				store, err := stores[name](b)
				if err != nil {
					b.Fatal(err)
				}
				s, ctx := follow(b, store), b.Context()
				for n := 0; b.Loop(); n++ {
					at, err := store.Position(ctx)
					if err != nil {
						b.Fatal(err)
					}
					w, err := store.Watch(ctx, backend.Watch{From: at})
					if err != nil {
						b.Fatal(err)
					}
					for i := range links {
						if reverse {
							i = links - 1 - i
						}
						spec := "{}"
						if i > 0 {
							spec = fmt.Sprintf(`{"keyRef":"k%d-%d"}`, n, i-1)
						}
						if _, err := s.Writer.Create(ctx, service.CreateRequest{Identity: servicetest.InDefault("Key", fmt.Sprintf("k%d-%d", n, i)), Spec: json.RawMessage(spec)}); err != nil {
							b.Fatal(err)
						}
					}
					awaitReady(b, w, fmt.Sprintf("k%d-%d", n, links-1))
					w.Close()
				}
			})
		}
	}
}

// awaitReady reads changes until a Key is ready.
func awaitReady(b *testing.B, w backend.Watcher, name string) {
	b.Helper()
	compiled, err := kind.Compile(servicetest.Building())
	if err != nil {
		b.Fatal(err)
	}
	k, err := compiled.Find("Key")
	if err != nil {
		b.Fatal(err)
	}
	for {
		d, err := w.Next(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		for _, e := range d.Events {
			if e.Resource.Name == name && dependency.Ready(k, e.Resource) {
				return
			}
		}
	}
}

// follow runs a gateway over a store, with the kinds of servicetest.Building, until the benchmark ends.
func follow(b *testing.B, store backend.Store) *service.Service {
	b.Helper()
	s, err := service.New(service.Config{Kinds: servicetest.Building(), Store: store})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.Context()))
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	b.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			b.Error(err)
		}
	})
	return s
}
