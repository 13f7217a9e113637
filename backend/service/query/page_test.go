package query_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/query"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

// TestPage_PagesAreCutOutOfTheWholeListByTheRelayAlgorithm asks for random pages, many in one
// call, with and without looking ahead, and holds each against the list as a whole.
func TestPage_PagesAreCutOutOfTheWholeListByTheRelayAlgorithm(t *testing.T) {
	seed := rand.Uint64()
	if s, err := strconv.ParseUint(os.Getenv("SLUICE_TEST_SEED"), 10, 64); err == nil {
		seed = s
	}
	t.Logf("SLUICE_TEST_SEED=%d", seed)
	for name, open := range servicetest.Embedded() {
		t.Run(name, func(t *testing.T) {
			store := open(t)
			rnd := rand.New(rand.NewPCG(seed, 0))
			svc, err := service.New(service.Config{Kinds: []descriptor.Kind{servicetest.Widget(), servicetest.Cluster()}, Store: store})
			if err != nil {
				t.Fatal(err)
			}
			o := &oracle{rnd: rnd, items: map[string]item{}}
			for i := range 40 {
				it := o.random(fmt.Sprintf("w%02d", i))
				id := kind.Identity{Kind: "Widget", Namespace: &it.ns, Name: it.name}
				if _, err := svc.Writer.Upsert(t.Context(), service.UpsertRequest{Identity: id, Spec: it.spec()}); err != nil {
					t.Fatal(err)
				}
				if rnd.IntN(8) == 0 { // unreadable
					key := backend.Key{Kind: "Widget", Namespace: it.ns, Name: it.name}
					got, err := store.Get(t.Context(), key)
					if err != nil {
						t.Fatal(err)
					}
					put := backend.Put{UID: got[0].UID, Body: backend.EncodeBody([]byte(`{"version":1,"spec":{}}`))}
					if _, err := store.Apply(t.Context(), backend.Batch{RequestID: "spoil", Deadline: time.Now().Add(time.Minute), Actions: []backend.Action{{Key: key, Op: backend.OpPut, Put: put}}}); err != nil {
						t.Fatal(err)
					}
				}
			}
			for range 60 {
				comparePages(t, o, svc)
			}
		})
	}
}

// comparePages asks for pages of random connections in one call.
func comparePages(t *testing.T, o *oracle, svc *service.Service) {
	t.Helper()
	ctx := context.Background()
	cond := o.condition(1)
	var reqs []query.ListRequest
	var whole [][]string
	for range 1 + o.rnd.IntN(6) {
		base := query.ListRequest{Kind: "Widget"}
		if o.rnd.IntN(2) == 0 {
			base.Filter = cond.filter
		}
		if o.rnd.IntN(3) == 0 {
			base.OrderBy, _ = o.orders()
		}
		switch o.rnd.IntN(3) {
		case 0:
			base.Namespace = servicetest.Pointer("ns0")
		case 1:
			base.Namespace = servicetest.Pointer("ns1")
			for range o.rnd.IntN(30) {
				base.Names = append(base.Names, fmt.Sprintf("w%02d", o.rnd.IntN(45)))
			}
		}
		all := base
		all.First = servicetest.Pointer(1000)
		p, err := svc.Reader.List(ctx, all)
		if err != nil {
			t.Fatalf("%s: %v", text(base), err)
		}
		var cursors []string
		for i := range p.Edges {
			cursors = append(cursors, p.Cursor(i))
		}
		for range 4 {
			reqs, whole = append(reqs, o.page(base, cursors)), append(whole, cursors)
		}
	}
	pages, errs := svc.Reader.ListMany(ctx, reqs)
	for i, p := range pages {
		if errs[i] != nil {
			t.Fatalf("%s: %v", text(reqs[i]), errs[i])
		}
		checkPage(t, p, &reqs[i], whole[i])
	}
}

// page asks for a random page of a connection that has these cursors.
func (o *oracle) page(req query.ListRequest, cursors []string) query.ListRequest {
	req.Ahead = o.rnd.IntN(2) == 0
	switch o.rnd.IntN(3) {
	case 0:
		req.First = servicetest.Pointer(o.rnd.IntN(6))
	case 1:
		req.Last = servicetest.Pointer(o.rnd.IntN(6))
	}
	if len(cursors) > 0 && o.rnd.IntN(2) == 0 {
		req.After = &cursors[o.rnd.IntN(len(cursors))]
	}
	if len(cursors) > 0 && o.rnd.IntN(2) == 0 {
		req.Before = &cursors[o.rnd.IntN(len(cursors))]
	}
	return req
}

// checkPage holds one page against all cursors of its connection.
func checkPage(t *testing.T, p *query.Page, req *query.ListRequest, all []string) {
	t.Helper()
	begin, end := 0, len(all)
	if req.After != nil {
		begin = slices.Index(all, *req.After) + 1
	}
	if req.Before != nil {
		end = max(slices.Index(all, *req.Before), begin)
	}
	switch {
	case req.First != nil:
		end = min(end, begin+*req.First)
	case req.Last != nil:
		begin = max(begin, end-*req.Last)
	}
	var got []string
	for i := range p.Edges {
		got = append(got, p.Cursor(i))
	}
	if !slices.Equal(got, all[begin:end]) {
		t.Fatalf("%s\ngot  %q\nwant %q", text(req), got, all[begin:end])
	}
	next, err := p.PageInfo().HasNextPage(context.Background())
	previous, err2 := p.PageInfo().HasPreviousPage(context.Background())
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	n, err := p.TotalCount(context.Background())
	if err != nil || n != len(all) {
		t.Fatalf("%s: total %d %v, want %d", text(req), n, err, len(all))
	}
	if len(got) > 0 && (next != (end < len(all)) || previous != (begin > 0)) {
		t.Fatalf("%s: next %v and previous %v, want %v and %v", text(req), next, previous, end < len(all), begin > 0)
	}
}

// TestPage_APageIsReadSideBySide is for the race detector: loaders give one page to all
// resolvers that ask for it.
func TestPage_APageIsReadSideBySide(t *testing.T) {
	f := setup(t)
	f.CreateWidget("a", `{"title":"A"}`)
	p := f.MustList(query.ListRequest{})
	cursors := make([]string, 4)
	var all sync.WaitGroup
	for i := range cursors {
		all.Go(func() { cursors[i] = p.Cursor(0) })
	}
	all.Wait()
	if all := slices.Compact(cursors); len(all) != 1 {
		t.Errorf("cursors of one edge: %q", all)
	}
}
