package query_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/query"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

// TestAccess_ListsShowWhatThePolicyAllowsAndNothingElse holds random pages, counts, summaries and namespaces of callers
// with random rights against what an administrator sees, filtered by the policy.
func TestAccess_ListsShowWhatThePolicyAllowsAndNothingElse(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	if s, err := strconv.ParseUint(os.Getenv("SLUICE_TEST_SEED"), 10, 64); err == nil {
		seed = s
	}
	t.Logf("SLUICE_TEST_SEED=%d", seed)
	for name, open := range servicetest.Embedded() {
		store := open(t)
		f := guarded(t, store, 0, servicetest.WidgetAtSite(), servicetest.Site())
		o := &oracle{rnd: rand.New(rand.NewPCG(seed, 0)), items: map[string]item{}}
		for i := range 40 {
			it := o.random(fmt.Sprintf("n%d", i))
			it.ns = fmt.Sprintf("ns%d", o.rnd.IntN(3))
			var labels service.Optional[[]service.Label]
			if it.tier != "" {
				labels = service.Optional[[]service.Label]{Set: true, Value: []service.Label{{Key: "tier", Value: it.tier}}}
			}
			req := service.UpsertRequest{Identity: kind.Identity{Kind: "Widget", Namespace: &it.ns, Name: it.name}, Spec: it.spec(), Metadata: service.Metadata{Labels: labels}}
			if _, err := f.Writer.Upsert(access.WithCaller(t.Context(), servicetest.Admin()), req); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range []string{"a", "b", "c"} {
			if _, err := f.Writer.Upsert(access.WithCaller(t.Context(), servicetest.Admin()), service.UpsertRequest{Identity: kind.Identity{Kind: "Site", Name: name}, Spec: map[string]any{"title": name}}); err != nil {
				t.Fatal(err)
			}
		}
		without := guarded(t, store, -1, servicetest.WidgetAtSite(), servicetest.Site())
		for round := range 40 {
			m := servicetest.RandomPolicy(o.rnd)
			f.StorePolicy(access.RoleKind, "role", access.Role{Rules: m.Rules})
			f.StorePolicy(access.BindingKind, "binding", access.Binding{Roles: []string{"role"}, Users: []string{"token:u"}, Namespaces: m.Namespaces})
			for where, svc := range map[string]*fixture{"in memory": f, "in the store": without} {
				t.Run(fmt.Sprintf("%s, %s, policy %d", name, where, round), func(t *testing.T) {
					t.Logf("%s", text(m.Rules)+" in "+text(m.Namespaces))
					for range 6 {
						compareAllowed(t, o, svc.Service, m)
					}
					compareCounts(t, o, svc.Service, m)
				})
			}
		}
	}
}

// compareAllowed asks for pages of one random connection.
func compareAllowed(t *testing.T, o *oracle, svc *service.Service, m servicetest.PolicyModel) {
	t.Helper()
	ctx := context.Background()
	base := query.ListRequest{Kind: "Widget"}
	global := o.rnd.IntN(6) == 0
	if global {
		base.Kind = "Site"
	}
	if o.rnd.IntN(2) == 0 {
		base.Filter = o.condition(1).filter
		if f := base.Filter.(map[string]any); global && f["namespace"] != nil {
			base.Filter = nil
		}
	}
	if o.rnd.IntN(2) == 0 {
		base.OrderBy, _ = o.orders()
	}
	switch o.rnd.IntN(4) {
	case 0:
		if !global {
			base.Namespace = servicetest.Pointer(fmt.Sprintf("ns%d", o.rnd.IntN(3)))
		}
	case 1:
		if !global {
			base.Parent = query.Parent{Reference: "spec.title", Key: backend.Key{Kind: "Site", Name: string(rune('a' + o.rnd.IntN(3)))}}
		}
	}
	all := base
	all.First = servicetest.Pointer(1000)
	p, err := svc.Reader.List(access.WithCaller(ctx, servicetest.Admin()), all)
	if err != nil {
		return // a namespace within a filter of a GLOBAL kind
	}
	usable := false
	var cursors []string
	for i := range p.Edges {
		at := p.Edges[i].Resource.Stored.Key
		if m.Sees(base.Kind, at.Namespace, at.Name, global) {
			cursors = append(cursors, p.Cursor(i))
		}
	}
	for range 4 {
		req := o.page(base, cursors)
		req.Total = o.rnd.IntN(2) == 0
		p, err := svc.Reader.List(access.WithCaller(ctx, servicetest.As("token:u")), req)
		if servicetest.CodeOf(err) == "FORBIDDEN" && len(cursors) == 0 && !usable {
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", text(req), err)
		}
		usable = true
		checkPage(t, p, &req, cursors)
	}
}

// compareCounts holds a summary and the namespaces against the items.
func compareCounts(t *testing.T, o *oracle, svc *service.Service, m servicetest.PolicyModel) {
	t.Helper()
	ctx := context.Background()
	whole, err := svc.Reader.List(access.WithCaller(ctx, servicetest.Admin()), query.ListRequest{Kind: "Widget", First: servicetest.Pointer(1000)})
	if err != nil {
		t.Fatal(err)
	}
	byNamespace, byTier := map[string]int{}, map[string]int{}
	for _, e := range whole.Edges {
		if at := e.Resource.Stored; m.Sees("Widget", at.Namespace, at.Name, false) {
			byNamespace["namespace="+at.Namespace]++
			st, err := kind.StateOf(at)
			if err != nil {
				t.Fatal(err)
			}
			byTier["labels.tier="+st.Meta.Labels["tier"]]++
		}
	}
	for key, want := range map[string]map[string]int{"namespace": byNamespace, "labels.tier": byTier} {
		s, err := svc.Reader.Summary(access.WithCaller(ctx, servicetest.As("token:u")), query.SummaryRequest{Kind: "Widget", By: []string{key}})
		if servicetest.CodeOf(err) == "FORBIDDEN" && len(want) == 0 {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, groups(s)); diff != "" {
			t.Errorf("summary by %s (-want +got):\n%s", key, diff)
		}
	}
	p, err := svc.Reader.Namespaces(access.WithCaller(ctx, servicetest.As("token:u")), servicetest.Pointer(100), nil)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, ns := range p.Namespaces {
		for _, c := range ns.Counts {
			if c.Kind == "Widget" {
				got["namespace="+ns.Name] = c.Count
			}
		}
	}
	if diff := cmp.Diff(byNamespace, got); diff != "" {
		t.Errorf("namespaces (-want +got):\n%s", diff)
	}
	if n, err := p.TotalCount(access.WithCaller(ctx, servicetest.As("token:u"))); err != nil || n != len(p.Namespaces) {
		t.Errorf("%d namespaces, %d of them shown: %v", n, len(p.Namespaces), err)
	}
}
