package query_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/dependency"
	"github.com/sluicegw/sluice/backend/service/query"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

func TestDependencies_AreShownAcrossScopes(t *testing.T) {
	servicetest.OnCampus(t, func(t *testing.T, h *servicetest.House) {
		gateways := readers(h)
		h.Put(servicetest.Global("Site", "s"), `{}`)
		for _, floor := range servicetest.Floors() {
			h.Put(servicetest.OnFloor(floor, "Room", "a"), `{"siteRef":"s"}`)
			h.Put(servicetest.OnFloor(floor, "Room", "b"), `{"siteRef":"missing"}`)
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
				"a": {Key: servicetest.KeyOf(servicetest.Global("Site", "s")), Path: "spec.siteRef", State: dependency.Bound},
				"b": {Key: servicetest.KeyOf(servicetest.Global("Site", "missing")), Path: "spec.siteRef", State: dependency.Missing},
			} {
				page := pages(servicetest.KeyOf(servicetest.OnFloor("f5", "Room", name)), query.Dependencies, 10)
				if d := cmp.Diff([]query.Dependency{want}, page.Dependencies); d != "" {
					t.Errorf("%s: %s", source, d)
				}
				if there := page.Edges[0].Resource.Stored != nil; there != (name == "a") {
					t.Errorf("%s: the site of %s is there: %v", source, name, there)
				}
			}
			page := pages(servicetest.KeyOf(servicetest.Global("Site", "s")), query.Dependents, 6)
			n, err := page.TotalCount(t.Context())
			if err != nil || n != len(servicetest.Floors()) {
				t.Errorf("%s: %d dependents, error %v", source, n, err)
			}
			for i, d := range page.Dependencies {
				if want := servicetest.KeyOf(servicetest.OnFloor(servicetest.Floors()[i], "Room", "a")); d.Key != want || d.State != dependency.Bound {
					t.Errorf("%s: dependent %d is %+v, want %v", source, i, d, want)
				}
			}
			if more, err := page.PageInfo().HasNextPage(t.Context()); len(page.Edges) != 6 || !more || err != nil {
				t.Errorf("%s: a page of %d, more: %v, error %v", source, len(page.Edges), more, err)
			}
			if n, err := pages(servicetest.KeyOf(servicetest.Global("Site", "s")), query.BlockedBy, 6).TotalCount(t.Context()); err != nil || n != 0 {
				t.Errorf("%s: %d hold a site that nothing is bound to, error %v", source, n, err)
			}
		}
	})
}

func TestDependencies_AGlobalResourceIsBlockedByResourcesOfAllNamespaces(t *testing.T) {
	for name, open := range servicetest.EachStore() {
		t.Run(name, func(t *testing.T) {
			h := servicetest.OpenHouse(t, open(t), servicetest.Campus(true))
			h.Put(servicetest.Global("Site", "s"), `{}`)
			var want []string
			for _, floor := range servicetest.Floors() {
				h.Put(servicetest.OnFloor(floor, "Room", "a"), `{"siteRef":"s"}`)
				want = append(want, floor)
			}
			pages, errs := h.Reader.Dependencies(t.Context(), []query.DependencyRequest{{Relation: query.BlockedBy, Key: servicetest.KeyOf(servicetest.Global("Site", "s"))}})
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
