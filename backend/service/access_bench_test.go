package service_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/query"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

// BenchmarkAccess reads 20,000 resources in 20 namespaces of 1,000, by callers with different scopes; off is a gateway
// without access control.
func BenchmarkAccess(b *testing.B) {
	store, err := memory.Open(memory.Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	kinds := append(servicetest.PolicyKinds(b), servicetest.Widget())
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	run := func(cfg access.Config) *service.Service {
		svc, err := service.New(service.Config{Kinds: kinds, Store: store, Access: cfg})
		if err != nil {
			b.Fatal(err)
		}
		go func() { _ = svc.Run(ctx) }()
		return svc
	}
	off := run(access.Config{})
	namespaces := map[string][]string{"all": {"*"}, "1 of 1,000 namespaces": {"ns-05"}}
	for i := range 16 {
		namespaces["16 namespaces"] = append(namespaces["16 namespaces"], fmt.Sprintf("ns-%02d", i))
	}
	for i := range 1000 {
		namespaces["1,000 namespaces"] = append(namespaces["1,000 namespaces"], fmt.Sprintf("ns-%02d", i))
	}
	for name, in := range namespaces {
		spec := access.Binding{Roles: []string{access.Editor}, Users: []string{"token:" + name}, Namespaces: in}
		id := kind.Identity{Kind: access.BindingKind, Name: fmt.Sprintf("b%d-%d", len(in), len(name))}
		if _, err := off.Writer.Upsert(ctx, service.UpsertRequest{Identity: id, Spec: spec}); err != nil {
			b.Fatal(err)
		}
	}
	for i := range 10_000 { // of others
		spec := access.Binding{Roles: []string{access.Editor}, Users: []string{fmt.Sprintf("token:other-%d", i)}, Namespaces: []string{fmt.Sprintf("ns-%03d", i%1000)}}
		if _, err := off.Writer.Upsert(ctx, service.UpsertRequest{Identity: kind.Identity{Kind: access.BindingKind, Name: fmt.Sprintf("other-%d", i)}, Spec: spec}); err != nil {
			b.Fatal(err)
		}
	}
	for i := range 20_000 {
		namespace := fmt.Sprintf("ns-%02d", i%20)
		id := kind.Identity{Kind: "Widget", Namespace: &namespace, Name: fmt.Sprintf("w%05d", i)}
		labels := service.Metadata{Labels: service.Optional[[]service.Label]{Set: true, Value: []service.Label{{Key: "team", Value: fmt.Sprint("team-", i%10)}}}}
		if _, err := off.Writer.Create(ctx, service.CreateRequest{Identity: id, Metadata: labels, Spec: map[string]any{"title": fmt.Sprint("t", i%10), "weight": 100 + i%100}}); err != nil {
			b.Fatal(err)
		}
	}
	on := run(access.Config{Enabled: true})
	for _, svc := range []*service.Service{off, on} {
		if err := svc.Index().Filled(ctx); err != nil {
			b.Fatal(err)
		}
	}
	callers := map[string]access.Caller{"off": anon}
	for name := range namespaces {
		callers[name] = servicetest.As("token:" + name)
	}
	label := map[string]any{"labels": []any{map[string]any{"key": "team", "eq": "team-5"}}}
	for what, read := range map[string]func(svc *service.Service, c access.Caller) error{
		"get": func(svc *service.Service, c access.Caller) error {
			_, err := svc.Reader.Get(access.WithCaller(ctx, c), kind.Identity{Kind: "Widget", Namespace: servicetest.Pointer("ns-05"), Name: "w00005"})
			return err
		},
		"page": func(svc *service.Service, c access.Caller) error {
			_, err := svc.Reader.List(access.WithCaller(ctx, c), query.ListRequest{Kind: "Widget", First: servicetest.Pointer(100), Ahead: true})
			return err
		},
		"newest of a label": func(svc *service.Service, c access.Caller) error {
			_, err := svc.Reader.List(access.WithCaller(ctx, c), query.ListRequest{Kind: "Widget", First: servicetest.Pointer(50), Filter: label, OrderBy: []query.Order{{Field: "createdAt", Descending: true}}})
			return err
		},
		"count": func(svc *service.Service, c access.Caller) error {
			p, err := svc.Reader.List(access.WithCaller(ctx, c), query.ListRequest{Kind: "Widget", First: servicetest.Pointer(0)})
			if err == nil {
				_, err = p.TotalCount(ctx)
			}
			return err
		},
	} {
		for _, who := range []string{"off", "all", "16 namespaces", "1 of 1,000 namespaces", "1,000 namespaces"} {
			svc := on
			if who == "off" {
				svc = off
			}
			b.Run(what+"/"+who, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if err := read(svc, callers[who]); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
