package service_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/query"
	"github.com/sluicegw/sluice/backend/service/servicetest"
	"github.com/sluicegw/sluice/graph/kinds/kindstest"
)

// adminGroup is the group of administrators in tests of access control.
const adminGroup = "token:admins"

func as(name string, groups ...string) access.Caller {
	return access.Caller{Identity: &access.Identity{Name: name, Source: "token", Groups: groups}}
}

func admin() access.Caller { return as("token:root", adminGroup) }

// policyKinds are the two kinds that give rights.
func policyKinds(t testing.TB) (out []descriptor.Kind) {
	for _, k := range kindstest.Kinds(t) {
		if k.Name == access.RoleKind || k.Name == access.BindingKind {
			out = append(out, k)
		}
	}
	return out
}

// guarded is a running service that judges its callers. indexMemory is as of [service.Config].
func guarded(t *testing.T, store backend.Store, indexMemory int64, kinds ...descriptor.Kind) *fixture {
	t.Helper()
	svc, err := service.New(service.Config{Kinds: append(kinds, policyKinds(t)...), Store: store, IndexMemory: indexMemory, Access: access.Config{Enabled: true, AdminGroup: adminGroup}})
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{&servicetest.Fixture{Service: svc, T: t}}
	f.ServeIndexed()
	return f
}

// set stores the spec of a role or a binding.
func (f *fixture) set(of, name string, spec any) {
	f.T.Helper()
	raw, err := json.Marshal(spec)
	if err == nil {
		_, err = f.Writer.Upsert(access.WithCaller(context.Background(), admin()), service.UpsertRequest{Identity: kind.Identity{Kind: of, Name: name}, Spec: json.RawMessage(raw)})
	}
	if err != nil {
		f.T.Fatalf("%s %s: %v", of, name, err)
	}
}

// model is what roles and bindings mean, in the plainest words.
type model struct {
	rules []access.Rule // of one role
	// namespaces of the binding.
	namespaces []string
}

func (m model) allows(v descriptor.Verb, k, namespace, name string, global bool) bool {
	has := func(list []string, one string) bool {
		return slices.Contains(list, "*") || slices.Contains(list, one)
	}
	for _, r := range m.rules {
		verb := slices.Contains(r.Verbs, "*") || slices.Contains(r.Verbs, v)
		here := has(m.namespaces, namespace) && (r.Namespaces == nil || has(r.Namespaces, namespace))
		if global {
			here = slices.Contains(m.namespaces, "*") && (r.Namespaces == nil || slices.Contains(r.Namespaces, "*"))
		}
		if verb && here && has(r.Kinds, k) && (r.Names == nil || has(r.Names, name)) {
			return true
		}
	}
	return false
}

func (m model) sees(k, namespace, name string, global bool) bool {
	return m.allows(descriptor.VerbList, k, namespace, name, global) && m.allows(descriptor.VerbGet, k, namespace, name, global)
}

// randomModel returns a role of a few rules and its binding.
func randomModel(rnd *rand.Rand) (m model) {
	some := func(all ...string) (out []string) {
		for _, one := range all {
			if rnd.IntN(2) == 0 {
				out = append(out, one)
			}
		}
		if len(out) == 0 {
			out = all[:1]
		}
		return out
	}
	for range 1 + rnd.IntN(3) {
		r := access.Rule{Kinds: some("Widget", "Site", "*"), Verbs: []descriptor.Verb{descriptor.VerbGet, descriptor.VerbList}}
		if rnd.IntN(4) == 0 {
			r.Verbs = r.Verbs[rnd.IntN(2):][:1]
		}
		if rnd.IntN(2) == 0 {
			r.Namespaces = some("ns0", "ns1", "ns2", "nowhere")
		}
		if rnd.IntN(3) == 0 {
			r.Names = some("n1", "n2", "n5", "n30", "a", "b", "absent")
		}
		m.rules = append(m.rules, r)
	}
	m.namespaces = [][]string{{"*"}, {"*"}, {"ns0"}, {"ns1", "ns2"}, {"ns0", "nowhere"}}[rnd.IntN(5)]
	return m
}

// site is a GLOBAL kind, to which widgets refer by their titles.
func site() descriptor.Kind {
	k := servicetest.Widget()
	k.Name, k.Singular, k.Plural, k.Scope = "Site", "site", "sites", descriptor.Global
	return k
}

func widgetAtSite() descriptor.Kind {
	k := servicetest.Widget()
	k.References = []descriptor.Reference{{Path: "spec.title", Kind: "Site", Field: "site", Inverse: "widgets"}}
	return k
}

// TestService_ListsShowWhatThePolicyAllowsAndNothingElse holds random pages, counts, summaries and namespaces of callers with
// random rights against what an administrator sees, filtered by the policy.
func TestService_ListsShowWhatThePolicyAllowsAndNothingElse(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	if s, err := strconv.ParseUint(os.Getenv("SLUICE_TEST_SEED"), 10, 64); err == nil {
		seed = s
	}
	t.Logf("SLUICE_TEST_SEED=%d", seed)
	for name, store := range stores(t) {
		f := guarded(t, store, 0, widgetAtSite(), site())
		o := &oracle{rnd: rand.New(rand.NewPCG(seed, 0)), items: map[string]item{}}
		for i := range 40 {
			it := o.random(fmt.Sprintf("n%d", i))
			it.ns = fmt.Sprintf("ns%d", o.rnd.IntN(3))
			var labels service.Optional[[]service.Label]
			if it.tier != "" {
				labels = service.Optional[[]service.Label]{Set: true, Value: []service.Label{{Key: "tier", Value: it.tier}}}
			}
			req := service.UpsertRequest{Identity: kind.Identity{Kind: "Widget", Namespace: &it.ns, Name: it.name}, Spec: it.spec(), Metadata: service.Metadata{Labels: labels}}
			if _, err := f.Writer.Upsert(access.WithCaller(t.Context(), admin()), req); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range []string{"a", "b", "c"} {
			if _, err := f.Writer.Upsert(access.WithCaller(t.Context(), admin()), service.UpsertRequest{Identity: kind.Identity{Kind: "Site", Name: name}, Spec: map[string]any{"title": name}}); err != nil {
				t.Fatal(err)
			}
		}
		without := guarded(t, store, -1, widgetAtSite(), site())
		for round := range 40 {
			m := randomModel(o.rnd)
			f.set(access.RoleKind, "role", access.Role{Rules: m.rules})
			f.set(access.BindingKind, "binding", access.Binding{Roles: []string{"role"}, Users: []string{"token:u"}, Namespaces: m.namespaces})
			for where, svc := range map[string]*fixture{"in memory": f, "in the store": without} {
				t.Run(fmt.Sprintf("%s, %s, policy %d", name, where, round), func(t *testing.T) {
					t.Logf("%s", text(m.rules)+" in "+text(m.namespaces))
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
func compareAllowed(t *testing.T, o *oracle, svc *service.Service, m model) {
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
	p, err := svc.Reader.List(access.WithCaller(ctx, admin()), all)
	if err != nil {
		return // a namespace within a filter of a GLOBAL kind
	}
	usable := false
	var cursors []string
	for i := range p.Edges {
		at := p.Edges[i].Resource.Stored.Key
		if m.sees(base.Kind, at.Namespace, at.Name, global) {
			cursors = append(cursors, p.Cursor(i))
		}
	}
	for range 4 {
		req := o.page(base, cursors)
		req.Total = o.rnd.IntN(2) == 0
		p, err := svc.Reader.List(access.WithCaller(ctx, as("token:u")), req)
		if code(err) == "FORBIDDEN" && len(cursors) == 0 && !usable {
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
func compareCounts(t *testing.T, o *oracle, svc *service.Service, m model) {
	t.Helper()
	ctx := context.Background()
	whole, err := svc.Reader.List(access.WithCaller(ctx, admin()), query.ListRequest{Kind: "Widget", First: servicetest.Pointer(1000)})
	if err != nil {
		t.Fatal(err)
	}
	byNamespace, byTier := map[string]int{}, map[string]int{}
	for _, e := range whole.Edges {
		if at := e.Resource.Stored; m.sees("Widget", at.Namespace, at.Name, false) {
			byNamespace["namespace="+at.Namespace]++
			st, err := kind.StateOf(at)
			if err != nil {
				t.Fatal(err)
			}
			byTier["labels.tier="+st.Meta.Labels["tier"]]++
		}
	}
	for key, want := range map[string]map[string]int{"namespace": byNamespace, "labels.tier": byTier} {
		s, err := svc.Reader.Summary(access.WithCaller(ctx, as("token:u")), query.SummaryRequest{Kind: "Widget", By: []string{key}})
		if code(err) == "FORBIDDEN" && len(want) == 0 {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, groups(s)); diff != "" {
			t.Errorf("summary by %s (-want +got):\n%s", key, diff)
		}
	}
	p, err := svc.Reader.Namespaces(access.WithCaller(ctx, as("token:u")), servicetest.Pointer(100), nil)
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
	if n, err := p.TotalCount(access.WithCaller(ctx, as("token:u"))); err != nil || n != len(p.Namespaces) {
		t.Errorf("%d namespaces, %d of them shown: %v", n, len(p.Namespaces), err)
	}
}
