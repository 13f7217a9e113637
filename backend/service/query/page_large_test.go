package query_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/query"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

func TestPage_PagesThatDoNotFitOneCallAreWhole(t *testing.T) {
	t.Parallel()
	for driver, open := range servicetest.Embedded() {
		t.Run(driver, func(t *testing.T) {
			store := open(t)
			svc := servicetest.Gateways(t, store, 1)[0]
			const count = 40 // of half a megabyte each
			var all []string
			for i := range count {
				name := fmt.Sprintf("w%02d", i)
				body := fmt.Sprintf(`{"version":"v1","metadata":{"generation":1},"spec":{"title":"A","old":%q}}`, strings.Repeat(name, 1<<17))
				if i%7 == 3 {
					body = `{"version":1,"spec":{}}` + strings.Repeat(" ", 1<<19)
				} else {
					all = append(all, name)
				}
				key := backend.Key{Kind: "Widget", Namespace: "default", Name: name}
				batch := backend.Batch{RequestID: name, Deadline: time.Now().Add(time.Minute), Actions: []backend.Action{{Key: key, Op: backend.OpPut, Put: backend.Put{UID: name, Body: backend.EncodeBody([]byte(body))}}}}
				if _, err := store.Apply(t.Context(), batch); err != nil {
					t.Fatal(err)
				}
			}
			var reqs []query.ListRequest
			for _, ahead := range []bool{false, true} {
				for _, req := range []query.ListRequest{
					{}, {First: servicetest.Pointer(len(all))}, {First: servicetest.Pointer(len(all) - 1)}, {Last: servicetest.Pointer(30)}, {Names: []string{}},
					{OrderBy: []query.Order{{Field: "spec.title"}}}, {Names: slices.Clone(all), First: servicetest.Pointer(20)}, {Names: slices.Clone(all), Last: servicetest.Pointer(len(all))},
				} {
					req.Kind, req.Namespace, req.Ahead = "Widget", servicetest.Pointer("default"), ahead
					reqs = append(reqs, req)
				}
			}
			pages, errs := svc.Reader.ListMany(context.Background(), reqs)
			for i, p := range pages {
				if errs[i] != nil {
					t.Fatalf("%s: %v", text(reqs[i]), errs[i])
				}
				want := slices.Clone(all)
				if n := reqs[i].First; n != nil {
					want = all[:*n]
				}
				if n := reqs[i].Last; n != nil {
					want = all[len(all)-*n:]
				}
				if reqs[i].Names != nil && len(reqs[i].Names) == 0 {
					want = nil
				}
				if got := servicetest.PageNames(p); !slices.Equal(got, want) {
					t.Errorf("%.300s:\ngot  %v\nwant %v", text(reqs[i]), got, want)
				}
				for _, e := range p.Edges {
					if servicetest.Title(e.Resource.Body) != "A" || !strings.Contains(string(e.Resource.Stored.Body), strings.Repeat(e.Resource.Stored.Name, 1<<17)) {
						t.Errorf("%s has the body of another", e.Resource.Stored.Name)
					}
				}
				next, err := p.PageInfo().HasNextPage(t.Context())
				if wantNext := len(want) > 0 && want[len(want)-1] != all[len(all)-1]; err != nil || next != wantNext {
					t.Errorf("%.300s: next %v, want %v", text(reqs[i]), next, wantNext)
				}
			}
		})
	}
}

func TestPage_LookupsOfManyKeysAreInTheirOrder(t *testing.T) {
	for driver, open := range servicetest.Embedded() {
		t.Run(driver, func(t *testing.T) {
			store := open(t)
			svc := servicetest.Gateways(t, store, 1)[0]
			at := func(i int) backend.Key {
				return backend.Key{Kind: "Widget", Namespace: "default", Name: fmt.Sprintf("w%04d", i)}
			}
			const stored = 1200
			for begin := 0; begin < stored; begin += 50 {
				batch := backend.Batch{RequestID: fmt.Sprint(begin), Deadline: time.Now().Add(time.Minute)}
				for i := begin; i < begin+50; i++ {
					body := `{"version":"v1","spec":{"title":"A"}}`
					if i%11 == 0 {
						body = `{"version":1}`
					}
					batch.Actions = append(batch.Actions, backend.Action{Key: at(i), Op: backend.OpPut, Put: backend.Put{UID: at(i).Name, Body: backend.EncodeBody([]byte(body))}})
				}
				if _, err := store.Apply(t.Context(), batch); err != nil {
					t.Fatal(err)
				}
			}
			rnd := rand.New(rand.NewPCG(1, 2))
			for range 20 {
				keys := make([]backend.Key, 1+rnd.IntN(2500))
				first := rnd.IntN(stored)
				for i := range keys {
					keys[i] = at(first + i)
					if rnd.IntN(10) == 0 {
						keys[i] = at(rnd.IntN(2 * stored))
					}
				}
				got, err := svc.Reader.Lookup(t.Context(), keys)
				if err != nil {
					t.Fatal(err)
				}
				for i, r := range got {
					var n int
					_, _ = fmt.Sscanf(keys[i].Name, "w%d", &n)
					if there := n < stored && n%11 != 0; (r != nil) != there || r != nil && (r.Stored.Key != keys[i] || r.Stored.UID != keys[i].Name || servicetest.Title(r.Body) != "A") {
						t.Fatalf("%d of %d: %v for %v", i, len(keys), r, keys[i])
					}
				}
			}
		})
	}
}
