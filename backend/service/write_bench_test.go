package service_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/access"
)

// BenchmarkPatch patches resources of a kind without conditions, of one with them, and of
// one that relies on another, while the gateway follows the changes.
func BenchmarkPatch(b *testing.B) {
	const many = 1000
	for _, of := range []string{"Guest", "Room", "Door"} {
		b.Run(of, func(b *testing.B) {
			store, err := memory.Open(memory.Config{LogEntries: 1000})
			if err != nil {
				b.Fatal(err)
			}
			s, err := service.New(service.Config{Kinds: building(), Store: store})
			if err != nil {
				b.Fatal(err)
			}
			ctx, cancel := context.WithCancel(context.Background())
			done := make(chan error, 1)
			go func() { done <- s.Run(ctx) }()
			defer func() {
				cancel()
				if err := <-done; err != nil {
					b.Error(err)
				}
			}()
			create := func(of, name, spec string) {
				if _, err := s.Create(ctx, access.Caller{}, service.CreateRequest{Identity: identity(of, name), Spec: json.RawMessage(spec)}); err != nil {
					b.Fatal(err)
				}
			}
			create("Room", "r", `{}`)
			for i := range many {
				spec := `{"title":"t"}`
				if of == "Door" {
					spec = `{"title":"t","roomRef":"r"}`
				}
				create(of, fmt.Sprint("n", i), spec)
			}
			if err := s.Index().Filled(ctx); err != nil {
				b.Fatal(err)
			}
			var n atomic.Int64
			b.ReportAllocs()
			for b.Loop() {
				i := n.Add(1)
				name := fmt.Sprint("n", i%many)
				got, err := store.Get(ctx, backend.Key{Kind: of, Namespace: "default", Name: name})
				if err != nil {
					b.Fatal(err)
				}
				patch := map[string]any{"title": fmt.Sprint("t", i)}
				if _, err := s.Patch(ctx, access.Caller{}, service.PatchRequest{Identity: identity(of, name), ExpectedRevision: got[0].Revision.String(), Patch: patch}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
