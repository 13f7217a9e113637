package service_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/dependency"
	"github.com/sluicegw/sluice/backend/service/query"
)

// readers are two gateways that run over the store of a campus: one has all kinds in memory,
// and the other one none.
func readers(h *house) map[string]*house {
	h.t.Helper()
	svc, err := service.New(service.Config{Kinds: campus(false), Store: h.store, RetryTimeout: time.Minute, IndexMemory: -1})
	if err != nil {
		h.t.Fatal(err)
	}
	h.run()
	if err := h.Index().Filled(h.t.Context()); err != nil {
		h.t.Fatal(err)
	}
	return map[string]*house{"memory": h, "store": {Service: svc, t: h.t, store: h.store, kinds: h.kinds}}
}

// placesOf are the namespaces and names on a page.
func placesOf(p *query.Page) (out []string) {
	for _, e := range p.Edges {
		out = append(out, e.Resource.Stored.Namespace+"/"+e.Resource.Stored.Name)
	}
	return out
}

func TestService_AnInverseOfAGlobalKindListsAllNamespacesOrOne(t *testing.T) {
	onCampus(t, func(t *testing.T, h *house) {
		gateways := readers(h)
		site := global("Site", "s")
		h.put(site, `{}`)
		var all []string
		for _, floor := range floors() {
			for i := range 3 {
				h.put(onFloor(floor, "Room", fmt.Sprint("r", i)), fmt.Sprintf(`{"siteRef":"s","title":"t%d"}`, i))
				all = append(all, fmt.Sprintf("%s/r%d", floor, i))
			}
			h.put(onFloor(floor, "Room", "other"), `{"siteRef":"elsewhere"}`)
		}
		parent := query.Parent{Reference: "spec.siteRef", Key: keyFor(site)}
		for source, g := range gateways {
			list := func(req query.ListRequest) *query.Page {
				t.Helper()
				req.Kind, req.Parent, req.Ahead = "Room", parent, true
				page, err := g.Reader.List(t.Context(), req)
				if err != nil {
					t.Fatalf("%s: %v", source, err)
				}
				return page
			}
			same := func(what string, got, want []string) {
				t.Helper()
				if d := cmp.Diff(want, got); d != "" {
					t.Errorf("%s: %s: %s", source, what, d)
				}
			}
			same("all", placesOf(list(query.ListRequest{})), all)
			if n, err := list(query.ListRequest{}).TotalCount(t.Context()); err != nil || n != len(all) {
				t.Errorf("%s: %d in all, error %v", source, n, err)
			}
			one := list(query.ListRequest{Namespace: new("f3")})
			same("of one namespace", placesOf(one), all[9:12])
			if n, err := one.TotalCount(t.Context()); err != nil || n != 3 {
				t.Errorf("%s: %d of one namespace, error %v", source, n, err)
			}
			same("of a namespace without any", placesOf(list(query.ListRequest{Namespace: new("empty")})), nil)
			filter := map[string]any{"name": map[string]any{"eq": "r1"}}
			same("filtered", placesOf(list(query.ListRequest{Filter: filter, First: new(2)})), []string{"f0/r1", "f1/r1"})
			same("filtered by namespace", placesOf(list(query.ListRequest{Filter: map[string]any{"namespace": map[string]any{"in": []any{"f6", "f2"}}}, First: new(4)})), append(slices.Clone(all[6:9]), all[18]))
			same("the last, by name", placesOf(list(query.ListRequest{OrderBy: []query.Order{{Field: "name", Descending: true}}, Last: new(2)})), []string{"f6/r0", "f7/r0"})
			for _, size := range []int{1, 5, 24} {
				var got []string
				req := query.ListRequest{First: &size}
				for more := true; more; {
					page := list(req)
					got = append(got, placesOf(page)...)
					req.After = page.PageInfo().EndCursor()
					var err error
					if more, err = page.PageInfo().HasNextPage(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				same(fmt.Sprint("forward by ", size), got, all)
				got = nil
				req = query.ListRequest{Last: &size}
				for more := true; more; {
					page := list(req)
					got = append(placesOf(page), got...)
					req.Before = page.PageInfo().StartCursor()
					var err error
					if more, err = page.PageInfo().HasPreviousPage(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				same(fmt.Sprint("backward by ", size), got, all)
			}
			// What follows from the write before it is on the page, whatever shard it lies in.
			for i, floor := range floors() {
				name := fmt.Sprintf("%s-%d", source, i)
				h.put(onFloor(floor, "Room", name), `{"siteRef":"fresh-`+source+`"}`)
				page, err := g.Reader.List(t.Context(), query.ListRequest{Kind: "Room", Parent: query.Parent{Reference: "spec.siteRef", Key: keyFor(global("Site", "fresh-"+source))}})
				if err != nil || len(page.Edges) != i+1 {
					t.Errorf("%s: after %d rooms, a page of %v, error %v", source, i+1, page, err)
				}
			}
		}
	})
}

func TestService_DependenciesAcrossScopesAreShown(t *testing.T) {
	onCampus(t, func(t *testing.T, h *house) {
		gateways := readers(h)
		h.put(global("Site", "s"), `{}`)
		for _, floor := range floors() {
			h.put(onFloor(floor, "Room", "a"), `{"siteRef":"s"}`)
			h.put(onFloor(floor, "Room", "b"), `{"siteRef":"missing"}`)
		}
		for source, g := range gateways {
			pages := func(key backend.Key, relation query.Relation, first int) *query.Page {
				t.Helper()
				found, err := g.Reader.Lookup(t.Context(), []backend.Key{key})
				if err != nil || found[0] == nil {
					t.Fatalf("%s: %v, error %v", source, found, err)
				}
				pages, errs := g.Reader.Dependencies(t.Context(), []query.DependencyRequest{{Relation: relation, Key: key, Body: found[0].Body, Targets: true, First: &first, Ahead: true}})
				if errs[0] != nil {
					t.Fatalf("%s: %v", source, errs[0])
				}
				return pages[0]
			}
			for name, want := range map[string]query.Dependency{
				"a": {Key: keyFor(global("Site", "s")), Path: "spec.siteRef", State: dependency.Bound},
				"b": {Key: keyFor(global("Site", "missing")), Path: "spec.siteRef", State: dependency.Missing},
			} {
				page := pages(keyFor(onFloor("f5", "Room", name)), query.Dependencies, 10)
				if d := cmp.Diff([]query.Dependency{want}, page.Dependencies); d != "" {
					t.Errorf("%s: %s", source, d)
				}
				if there := page.Edges[0].Resource.Stored != nil; there != (name == "a") {
					t.Errorf("%s: the site of %s is there: %v", source, name, there)
				}
			}
			page := pages(keyFor(global("Site", "s")), query.Dependents, 6)
			n, err := page.TotalCount(t.Context())
			if err != nil || n != len(floors()) {
				t.Errorf("%s: %d dependents, error %v", source, n, err)
			}
			for i, d := range page.Dependencies {
				if want := keyFor(onFloor(floors()[i], "Room", "a")); d.Key != want || d.State != dependency.Bound {
					t.Errorf("%s: dependent %d is %+v, want %v", source, i, d, want)
				}
			}
			if more, err := page.PageInfo().HasNextPage(t.Context()); len(page.Edges) != 6 || !more || err != nil {
				t.Errorf("%s: a page of %d, more: %v, error %v", source, len(page.Edges), more, err)
			}
			if n, err := pages(keyFor(global("Site", "s")), query.BlockedBy, 6).TotalCount(t.Context()); err != nil || n != 0 {
				t.Errorf("%s: %d hold a site that nothing is bound to, error %v", source, n, err)
			}
		}
	})
}

func TestService_AGlobalResourceIsBlockedByResourcesOfAllNamespaces(t *testing.T) {
	for name, open := range storesOfOneShard() {
		t.Run(name, func(t *testing.T) {
			h := openHouseOf(t, open(t), campus(true))
			h.put(global("Site", "s"), `{}`)
			var want []string
			for _, floor := range floors() {
				h.put(onFloor(floor, "Room", "a"), `{"siteRef":"s"}`)
				want = append(want, floor)
			}
			pages, errs := h.Reader.Dependencies(t.Context(), []query.DependencyRequest{{Relation: query.BlockedBy, Key: keyFor(global("Site", "s"))}})
			if errs[0] != nil {
				t.Fatal(errs[0])
			}
			var got []string
			for _, d := range pages[0].Dependencies {
				got = append(got, d.Key.Namespace)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
		})
	}
}
