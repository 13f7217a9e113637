package query_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/query"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

// readers are two gateways that run over the store of a campus: one has all kinds in memory,
// and the other one none.
func readers(h *servicetest.House) map[string]*servicetest.House {
	h.T.Helper()
	svc, err := service.New(service.Config{Kinds: servicetest.Campus(false), Store: h.Store, RetryTimeout: time.Minute, IndexMemory: -1})
	if err != nil {
		h.T.Fatal(err)
	}
	h.Start()
	if err := h.Index().Filled(h.T.Context()); err != nil {
		h.T.Fatal(err)
	}
	return map[string]*servicetest.House{"memory": h, "store": {Service: svc, T: h.T, Store: h.Store, Compiled: h.Compiled}}
}

// placesOf are the namespaces and names on a page.
func placesOf(p *query.Page) (out []string) {
	for _, e := range p.Edges {
		out = append(out, e.Resource.Stored.Namespace+"/"+e.Resource.Stored.Name)
	}
	return out
}

func TestList_AnInverseOfAGlobalKindListsAllNamespacesOrOne(t *testing.T) {
	servicetest.OnCampus(t, func(t *testing.T, h *servicetest.House) {
		gateways := readers(h)
		site := servicetest.Global("Site", "s")
		h.Put(site, `{}`)
		var all []string
		for _, floor := range servicetest.Floors() {
			for i := range 3 {
				h.Put(servicetest.OnFloor(floor, "Room", fmt.Sprint("r", i)), fmt.Sprintf(`{"siteRef":"s","title":"t%d"}`, i))
				all = append(all, fmt.Sprintf("%s/r%d", floor, i))
			}
			h.Put(servicetest.OnFloor(floor, "Room", "other"), `{"siteRef":"elsewhere"}`)
		}
		parent := query.Parent{Reference: "spec.siteRef", Key: servicetest.KeyOf(site)}
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
			for i, floor := range servicetest.Floors() {
				name := fmt.Sprintf("%s-%d", source, i)
				h.Put(servicetest.OnFloor(floor, "Room", name), `{"siteRef":"fresh-`+source+`"}`)
				page, err := g.Reader.List(t.Context(), query.ListRequest{Kind: "Room", Parent: query.Parent{Reference: "spec.siteRef", Key: servicetest.KeyOf(servicetest.Global("Site", "fresh-"+source))}})
				if err != nil || len(page.Edges) != i+1 {
					t.Errorf("%s: after %d rooms, a page of %v, error %v", source, i+1, page, err)
				}
			}
		}
	})
}
