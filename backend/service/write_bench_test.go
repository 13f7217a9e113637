package service_test

import (
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/servicetest"
	"github.com/sluicegw/sluice/graph/kinds/kindstest"
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
			s, ctx := follow(b, store), b.Context()
			create := func(of, name, spec string) {
				if _, err := s.Writer.Create(ctx, service.CreateRequest{Identity: servicetest.InDefault(of, name), Spec: json.RawMessage(spec)}); err != nil {
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
				if _, err := s.Writer.Patch(ctx, service.PatchRequest{Identity: servicetest.InDefault(of, name), ExpectedRevision: got[0].Revision.String(), Patch: patch}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkUpdateStatus reports statuses of a kind without maxima, and of one in which
// almost every field has one.
func BenchmarkUpdateStatus(b *testing.B) {
	conditions := []any{
		map[string]any{"type": "Available", "status": "True", "reason": "Success", "message": "OpenStack resource is available"},
		map[string]any{"type": "Progressing", "status": "False", "reason": "Success", "message": "OpenStack resource is up to date"},
	}
	reported := map[string]any{
		"id": "5d6b9a0e-7b1c-4f7e-9a43-0c5f3a9d2b11", "conditions": conditions,
		"resource": map[string]any{
			"name": "net-a", "description": "Of the shop", "projectID": "3f1c", "status": "ACTIVE", "mtu": 1500,
			"tags": []any{"web", "shop", "blue"}, "subnets": []any{"a", "b", "c", "d"}, "availabilityZoneHints": []any{"nova"},
			"provider": map[string]any{"networkType": "vxlan", "physicalNetwork": "p", "segmentationID": 7},
		},
	}
	for _, of := range []struct {
		kind   string
		spec   any
		status map[string]any
	}{
		{"Room", json.RawMessage(`{}`), map[string]any{"conditions": conditions}},
		{"Network", json.RawMessage(`{"cloudCredentialsRef":{"secretName":"s","cloudName":"c"},"resource":{}}`), reported},
	} {
		b.Run(of.kind, func(b *testing.B) {
			store, err := memory.Open(memory.Config{LogEntries: 1000})
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = store.Close() }()
			s, err := service.New(service.Config{Kinds: append(servicetest.Building(), kindstest.Kinds(b)...), Store: store})
			if err != nil {
				b.Fatal(err)
			}
			created, err := s.Writer.Create(b.Context(), service.CreateRequest{Identity: servicetest.InDefault(of.kind, "a"), Spec: of.spec})
			if err != nil {
				b.Fatal(err)
			}
			revision := created.Resource.Stored.Revision.String()
			n := 0
			b.ReportAllocs()
			for b.Loop() {
				n++
				conditions[0].(map[string]any)["message"] = fmt.Sprint("try ", n)
				out, err := s.Writer.UpdateStatus(b.Context(), service.StatusRequest{Identity: servicetest.InDefault(of.kind, "a"), ExpectedRevision: revision, Status: of.status})
				if err != nil {
					b.Fatal(err)
				}
				revision = out.Resource.Stored.Revision.String()
			}
		})
	}
}
