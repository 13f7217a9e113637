package query_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/query"
	queryplan "github.com/sluicegw/sluice/backend/service/query/plan"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

func TestList_AKindCanStayOutOfMemory(t *testing.T) {
	store, err := memory.Open(memory.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	out := servicetest.Widget()
	out.OutOfMemory = true
	s, err := service.New(service.Config{Kinds: []descriptor.Kind{out, servicetest.Cluster()}, Store: store})
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{&servicetest.Fixture{Service: s, T: t, Store: store}}
	f.ServeIndexed()
	f.CreateWidget("a", `{"title":"A"}`)
	ctx, reads := queryplan.WithExplanation(t.Context())
	if page, err := s.Reader.List(ctx, query.ListRequest{Kind: "Widget"}); err != nil || len(page.Edges) != 1 {
		t.Errorf("%v %v", page, err)
	}
	if got := reads.Reads(); len(got) != 1 || got[0].Source != "store" {
		t.Errorf("it was read so: %+v", got)
	}
	if stats := s.Index().Stats(); stats.Kinds != 1 || stats.Served != 1 {
		t.Errorf("%+v", stats)
	}
}

func TestList_AReadOfOneOperationSeesOneState(t *testing.T) {
	f := setupIndexed(t)
	f.CreateWidget("a", `{"title":"A"}`)
	ctx, moment := query.WithSnapshot(t.Context())
	count := func() int {
		t.Helper()
		page, err := f.Reader.List(ctx, query.ListRequest{Kind: "Widget"})
		if err != nil {
			t.Fatal(err)
		}
		n, err := page.TotalCount(ctx)
		if err != nil || n != len(page.Edges) {
			t.Fatalf("%d of %d, %v", n, len(page.Edges), err)
		}
		return n
	}
	if n := count(); n != 1 {
		t.Errorf("%d at first", n)
	}
	f.CreateWidget("b", `{"title":"B"}`)
	if n := count(); n != 1 {
		t.Errorf("%d in the same moment", n)
	}
	if r, err := f.Reader.Get(ctx, servicetest.Named("b")); r != nil || err != nil {
		t.Errorf("in the same moment there is %v, %v", r, err)
	}
	moment.Forget()
	if n := count(); n != 2 {
		t.Errorf("%d in the next moment", n)
	}
	if page, err := f.Reader.List(context.Background(), query.ListRequest{Kind: "Widget"}); err != nil || len(page.Edges) != 2 {
		t.Errorf("without a moment: %v %v", page, err)
	}
}

func TestList_AnOrderOfAFewLooksAtNoMore(t *testing.T) {
	f := setupIndexed(t)
	for i := range 1000 {
		f.write(item{ns: "big", name: fmt.Sprint("n", i), title: "t", weight: servicetest.Pointer(100 + i)})
	}
	for i := range 10 {
		f.write(item{ns: "small", name: fmt.Sprint("n", i), title: "t", weight: servicetest.Pointer(100 + i)})
	}
	for _, field := range []string{"spec.weight", "createdAt", "name", "spec.title"} {
		for what, req := range map[string]query.ListRequest{
			"a small namespace":     {Namespace: servicetest.Pointer("small"), First: servicetest.Pointer(5)},
			"the newest of many":    {First: servicetest.Pointer(5)},
			"the last of many":      {Last: servicetest.Pointer(5)},
			"half of the order":     {Last: servicetest.Pointer(5), Filter: json.RawMessage(`{"spec":{"weight":{"gte":600}}}`)},
			"a narrow range of all": {First: servicetest.Pointer(5), Filter: json.RawMessage(`{"spec":{"weight":{"lt":103}}}`)},
		} {
			if what == "half of the order" && field != "spec.weight" {
				continue
			}
			ctx, reads := queryplan.WithExplanation(t.Context())
			req.Kind, req.OrderBy = "Widget", []query.Order{{Field: field, Descending: true}}
			page, err := f.Reader.List(ctx, req)
			if err != nil || len(page.Edges) != 5 {
				t.Fatalf("%s by %s: %v %v", what, field, page, err)
			}
			looked := reads.Reads()[0].Looked
			if many := field == "spec.title"; looked > 20 && !many || looked > 1100 {
				t.Errorf("%s by %s looks at %d: %s", what, field, looked, reads.Reads()[0].By)
			}
		}
	}
}

// TestList_ACountReadsNothingTwice: conditions on one attribute are one run, and where runs have
// more than everything, everything is read.
func TestList_ACountReadsNothingTwice(t *testing.T) {
	f := setupIndexed(t)
	for i := range 100 {
		f.write(item{ns: "a", name: fmt.Sprint("n", i), title: "t", weight: servicetest.Pointer(100 + i)})
	}
	var contains, ranges []string
	for i := range 50 {
		contains = append(contains, fmt.Sprintf(`{"spec":{"title":{"contains":"z%d"}}}`, i))
		ranges = append(ranges, fmt.Sprintf(`{"spec":{"weight":{"gte":%d}}}`, 100+i))
	}
	for name, c := range map[string]struct {
		any  []string
		want int
	}{"one run": {contains, 0}, "more than everything": {ranges, 100}} {
		filter := `{"or":[` + strings.Join(c.any, ",") + `]}`
		ctx, reads := queryplan.WithExplanation(t.Context())
		page, err := f.Reader.List(ctx, query.ListRequest{Kind: "Widget", First: servicetest.Pointer(0), Filter: json.RawMessage(filter)})
		if err != nil {
			t.Fatal(err)
		}
		n, err := page.TotalCount(ctx)
		if looked := reads.Reads()[0].Looked; err != nil || n != c.want || looked > 100 {
			t.Errorf("%s: %d, looked at %d: %v", name, n, looked, err)
		}
	}
}

func TestList_AReadThatIsLateHasNoPartInTheNextOperation(t *testing.T) {
	f := setupIndexed(t)
	f.CreateWidget("a", `{"title":"old"}`)
	first, moment := query.WithSnapshot(t.Context())
	late := context.WithoutCancel(first)
	if _, err := f.Reader.Get(first, servicetest.Named("a")); err != nil {
		t.Fatal(err)
	}
	moment.Forget()
	for _, ctx := range []context.Context{first, late} {
		if page, err := f.Reader.List(ctx, query.ListRequest{Kind: "Widget"}); err != nil || len(page.Edges) != 1 {
			t.Fatalf("a late read: %v %v", page, err)
		}
	}
	if _, err := f.UpdateWidget("a", f.Stored("a").Revision.String(), `{"title":"new"}`); err != nil {
		t.Fatal(err)
	}
	ctx, moment := query.WithSnapshot(t.Context())
	next, err := f.Reader.Get(ctx, servicetest.Named("a"))
	if err != nil || servicetest.Title(next.Body) != "new" {
		t.Errorf("the next operation reads %v, %v", next, err)
	}
	page, err := f.Reader.List(ctx, query.ListRequest{Kind: "Widget"})
	if err != nil {
		t.Fatal(err)
	}
	moment.Forget()
	if len(page.Edges) != 1 || page.Edges[0].Resource.Body == nil {
		t.Error("a page that resolvers may have is gone with the operation")
	}
}

func TestList_ACursorLeadsNowhereElse(t *testing.T) {
	for name, setup := range map[string]func(*testing.T) *fixture{"store": setup, "index": setupIndexed} {
		t.Run(name, func(t *testing.T) {
			f := setup(t)
			f.write(item{ns: "default", name: "a", title: "t"})
			f.write(item{ns: "another", name: "secret", title: "t"})
			f.write(item{ns: "zoo", name: "secret", title: "t"})
			for _, order := range [][]query.Order{nil, {{Field: "name"}}, {{Field: "spec.title"}}} {
				req := query.ListRequest{Kind: "Widget", Namespace: servicetest.Pointer("default"), OrderBy: order}
				cursor, err := base64.RawURLEncoding.DecodeString(f.MustList(req).Cursor(0))
				if err != nil {
					t.Fatal(err)
				}
				own := backend.OrderTuple("default", "a")
				for _, place := range []string{"aaa", "zzz"} {
					forged := base64.RawURLEncoding.EncodeToString(append(cursor[:len(cursor)-len(own):len(cursor)-len(own)], backend.OrderTuple(place, "x")...))
					after, before := req, req
					after.After, before.Before, before.Last = &forged, &forged, servicetest.Pointer(10)
					for _, page := range []*query.Page{f.MustList(after), f.MustList(before)} {
						for _, e := range page.Edges {
							if e.Resource.Stored.Namespace != "default" {
								t.Errorf("%v: a cursor in %s leads to %s", order, place, e.Resource.Stored.Key)
							}
						}
					}
				}
			}
		})
	}
}

func TestList_ACatalogueCanStayOutOfMemoryWhole(t *testing.T) {
	store, err := memory.Open(memory.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	out := servicetest.Widget()
	out.OutOfMemory = true
	s, err := service.New(service.Config{Kinds: []descriptor.Kind{out}, Store: store})
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{&servicetest.Fixture{Service: s, T: t, Store: store}}
	f.ServeIndexed()
	f.CreateWidget("a", `{"title":"A"}`)
	if r, err := s.Reader.Get(t.Context(), servicetest.Named("a")); err != nil || r == nil {
		t.Errorf("%v %v", r, err)
	}
}

func TestList_TimesOutsideTheOrdinaryFilterLikeOthers(t *testing.T) {
	f := setup(t)
	f.CreateWidget("a", `{"title":"A"}`)
	for _, c := range []struct {
		op, at string
		want   int
	}{
		{"lt", "9999-12-31T23:59:59Z", 1}, {"lt", "2263-01-01T00:00:00Z", 1}, {"gt", "2300-01-01T00:00:00Z", 0}, {"gte", "9999-12-31T23:59:59Z", 0},
		{"gt", "0001-01-01T00:00:00Z", 1}, {"gte", "1500-01-01T00:00:00Z", 1}, {"gt", "1600-01-01T00:00:00Z", 1}, {"lt", "1600-01-01T00:00:00Z", 0}, {"lte", "0000-01-01T00:00:00Z", 0},
	} {
		for _, field := range []string{"createdAt", "updatedAt"} {
			if p := f.MustList(query.ListRequest{Kind: "Widget", Filter: map[string]any{field: map[string]any{c.op: c.at}}}); len(p.Edges) != c.want {
				t.Errorf("%s %s %s: %d found, want %d", field, c.op, c.at, len(p.Edges), c.want)
			}
		}
	}
}
