package query_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/change"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/query"
	"github.com/sluicegw/sluice/backend/service/query/filter"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

func TestList_AWalkSeesEachUntouchedResourceOnceWhateverElseIsWritten(t *testing.T) {
	f := servicetest.Setup(t)
	rnd := rand.New(rand.NewPCG(7, 7))
	var want []string
	for i := range 1000 {
		name := fmt.Sprintf("n%04d", i)
		f.CreateWidget(name, `{"title":"A"}`)
		want = append(want, name)
	}
	churn := func() {
		name := fmt.Sprintf("n%04d-churn", rnd.IntN(1000))
		if f.Stored(name) == nil {
			f.CreateWidget(name, `{"title":"A"}`)
		} else if _, err := f.Writer.Delete(context.Background(), service.DeleteRequest{Identity: servicetest.Named(name)}); err != nil {
			t.Fatal(err)
		}
	}
	walk := func(next func(cursor *string) *query.Page, cursorOf func(*query.Page) *string) []string {
		var got []string
		var cursor *string
		for {
			p := next(cursor)
			for _, name := range servicetest.PageNames(p) {
				if len(name) == 5 {
					got = append(got, name)
				}
			}
			more, err := p.PageInfo().HasNextPage(context.Background())
			if cursorOf(p) == p.PageInfo().StartCursor() {
				more, err = p.PageInfo().HasPreviousPage(context.Background())
			}
			if err != nil {
				t.Fatal(err)
			}
			if !more {
				return got
			}
			cursor = cursorOf(p)
			churn()
		}
	}
	forward := walk(func(c *string) *query.Page {
		return f.MustList(query.ListRequest{First: servicetest.Pointer(7), After: c})
	},
		func(p *query.Page) *string { return p.PageInfo().EndCursor() })
	if !slices.Equal(forward, want) {
		t.Errorf("forward by 7: %d resources, want the %d untouched ones in order", len(forward), len(want))
	}
	var got []string
	var before *string
	for {
		p := f.MustList(query.ListRequest{Last: servicetest.Pointer(13), Before: before})
		page := slices.DeleteFunc(servicetest.PageNames(p), func(n string) bool { return len(n) != 5 })
		got = append(slices.Clone(page), got...)
		more, err := p.PageInfo().HasPreviousPage(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if !more {
			break
		}
		before = p.PageInfo().StartCursor()
		churn()
	}
	if !slices.Equal(got, want) {
		t.Errorf("backward by 13: %d resources, want the %d untouched ones in order", len(got), len(want))
	}
}

func TestList_PageInfoIsExactInBothDirections(t *testing.T) {
	f := servicetest.Setup(t)
	for _, n := range []string{"a", "b", "c", "d", "e"} {
		f.CreateWidget(n, `{"title":"A"}`)
	}
	all := f.MustList(query.ListRequest{})
	cursor := func(i int) *string { return new(all.Cursor(i)) }
	for _, c := range []struct {
		name       string
		req        query.ListRequest
		want       string
		prev, next bool
	}{
		{"everything", query.ListRequest{}, "[a b c d e]", false, false},
		{"first 2", query.ListRequest{First: servicetest.Pointer(2)}, "[a b]", false, true},
		{"first 2 after b", query.ListRequest{First: servicetest.Pointer(2), After: cursor(1)}, "[c d]", true, true},
		{"first 9 after c", query.ListRequest{First: servicetest.Pointer(9), After: cursor(2)}, "[d e]", true, false},
		{"first 0", query.ListRequest{First: servicetest.Pointer(0)}, "[]", false, true},
		{"after the last", query.ListRequest{After: cursor(4)}, "[]", true, false},
		{"between", query.ListRequest{After: cursor(0), Before: cursor(3)}, "[b c]", true, true},
		{"last 2", query.ListRequest{Last: servicetest.Pointer(2)}, "[d e]", true, false},
		{"last 2 before d", query.ListRequest{Last: servicetest.Pointer(2), Before: cursor(3)}, "[b c]", true, true},
		{"last 9 before c", query.ListRequest{Last: servicetest.Pointer(9), Before: cursor(2)}, "[a b]", false, true},
		{"before the first", query.ListRequest{Last: servicetest.Pointer(3), Before: cursor(0)}, "[]", false, true},
		{"an empty cursor is none", query.ListRequest{First: servicetest.Pointer(1), After: servicetest.Pointer("")}, "[a]", false, true},
		{"first 5", query.ListRequest{First: servicetest.Pointer(5)}, "[a b c d e]", false, false},
		{"last 0", query.ListRequest{Last: servicetest.Pointer(0)}, "[]", true, false},
		{"first 0 after the last", query.ListRequest{First: servicetest.Pointer(0), After: cursor(4)}, "[]", true, false},
		{"first 0 between two neighbours", query.ListRequest{First: servicetest.Pointer(0), After: cursor(1), Before: cursor(2)}, "[]", true, true},
		{"last 0 before the first", query.ListRequest{Last: servicetest.Pointer(0), Before: cursor(0)}, "[]", false, true},
	} {
		for _, ahead := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, ahead %v", c.name, ahead), func(t *testing.T) {
				c.req.Ahead = ahead
				p := f.MustList(c.req)
				prev, err1 := p.PageInfo().HasPreviousPage(context.Background())
				next, err2 := p.PageInfo().HasNextPage(context.Background())
				if err1 != nil || err2 != nil {
					t.Fatal(err1, err2)
				}
				if got := fmt.Sprint(servicetest.PageNames(p)); got != c.want || prev != c.prev || next != c.next {
					t.Errorf("%s previous %v next %v, want %s %v %v", got, prev, next, c.want, c.prev, c.next)
				}
				if n, err := p.TotalCount(context.Background()); n != 5 || err != nil {
					t.Errorf("totalCount %d %v", n, err)
				}
			})
		}
	}
}

// limits notes how much each range asks for.
type limits struct {
	*memory.Store
	reads []string
}

func (l *limits) Ranges(ctx context.Context, rs []backend.Range) ([]backend.Page, error) {
	for _, r := range rs {
		if !r.Deleting {
			l.reads = append(l.reads, fmt.Sprintf("%d bare %v", r.Limit, r.Bare))
		}
	}
	return l.Store.Ranges(ctx, rs)
}

func TestList_APageReadsNoMoreThanIsAskedFor(t *testing.T) {
	f := servicetest.Setup(t)
	for i := range 20 {
		f.CreateWidget(fmt.Sprintf("n%02d", i), `{"title":"A"}`)
	}
	store := &limits{Store: f.Store}
	s, err := service.New(service.Config{Kinds: []descriptor.Kind{servicetest.Widget(), servicetest.Cluster()}, Store: store})
	if err != nil {
		t.Fatal(err)
	}
	title := map[string]any{"spec": map[string]any{"title": map[string]any{"eq": "A"}}}
	for _, c := range []struct {
		name, want string
		req        query.ListRequest
	}{
		{"a page", "[5 bare true]", query.ListRequest{First: servicetest.Pointer(5)}},
		{"a page of one value of a field", "[0 bare true 500 bare true]", query.ListRequest{First: servicetest.Pointer(5), Filter: title}},
		{"whether there is more", "[6 bare true]", query.ListRequest{First: servicetest.Pointer(5), Ahead: true}},
		{"no resources", "[]", query.ListRequest{First: servicetest.Pointer(0)}},
		{"an order", "[0 bare true 500 bare true]", query.ListRequest{First: servicetest.Pointer(5), OrderBy: []query.Order{{Field: "createdAt"}}}},
	} {
		c.req.Kind, store.reads = "Widget", nil
		if _, err := s.Reader.List(t.Context(), c.req); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(store.reads); got != c.want {
			t.Errorf("%s: %s was asked for, want %s", c.name, got, c.want)
		}
	}
}

func TestList_BadPagesAreRefusedAndNameTheLimit(t *testing.T) {
	f := servicetest.Setup(t)
	for _, req := range []query.ListRequest{{First: servicetest.Pointer(-1)}, {Last: servicetest.Pointer(-1)}, {First: servicetest.Pointer(1001)}, {First: servicetest.Pointer(1), Last: servicetest.Pointer(1)}} {
		req.Kind = "Widget"
		_, err := f.Reader.List(context.Background(), req)
		servicetest.WantCode(t, err, failure.CodeBadUserInput)
	}
	f.CreateWidget("a", `{"title":"A"}`)
	foreign := f.MustList(query.ListRequest{Namespace: servicetest.Pointer("default")}).Cursor(0)
	for _, cursor := range []string{"x", "====", "AQ", foreign, kind.GlobalID(backend.Key{Kind: "Widget", Name: "a"})} {
		_, err := f.Reader.List(context.Background(), query.ListRequest{Kind: "Widget", After: &cursor})
		servicetest.WantCode(t, err, failure.CodeCursorInvalid)
	}
}

func TestList_AnUnreadableResourceLeavesListsAndStreamsWhole(t *testing.T) {
	f := servicetest.Setup(t)
	for _, n := range []string{"a", "b", "c"} {
		f.CreateWidget(n, `{"title":"A"}`)
	}
	stream, err := f.Feed.Changes(context.Background(), change.Request{})
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	f.Rewrite("b", false, func(m map[string]any) { delete(m["spec"].(map[string]any), "title") })
	f.CreateWidget("d", `{"title":"A"}`)
	if got := fmt.Sprint(servicetest.PageNames(f.MustList(query.ListRequest{First: servicetest.Pointer(3)}))); got != "[a c d]" {
		t.Errorf("page %s", got)
	}
	_, err = f.Reader.Get(context.Background(), servicetest.Named("b"))
	servicetest.WantCode(t, err, failure.CodeUnreadable)
	if n := f.UnreadableCount.Load(); n != 1 {
		t.Errorf("%d unreadable resources were counted, want 1", n)
	}
	var types []change.Type
	for len(types) < 3 {
		changes, err := stream.Next(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range changes {
			types = append(types, c.Type)
			_, err := c.Body()
			if c.Type == change.Modified {
				servicetest.WantCode(t, err, failure.CodeUnreadable)
			} else if err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := fmt.Sprint(types); got != "[IN_SYNC MODIFIED ADDED]" {
		t.Errorf("stream %s", got)
	}
}

func TestList_AQueryThatNamesItsResourcesReadsThemByKey(t *testing.T) {
	f := servicetest.Setup(t)
	for _, name := range []string{"a", "b", "c", "d"} {
		f.CreateWidget(name, `{"title":"A"}`)
	}
	all := query.ListRequest{Namespace: servicetest.Pointer("default"), Names: []string{"d", "absent", "b", "a", "d", "", "c"}}
	t.Run("in the order of the names, each once, without those that are absent", func(t *testing.T) {
		if got := servicetest.PageNames(f.MustList(all)); !slices.Equal(got, []string{"a", "b", "c", "d"}) {
			t.Error(got)
		}
	})
	t.Run("no names are no resources", func(t *testing.T) {
		none := all
		none.Names = []string{}
		if got := servicetest.PageNames(f.MustList(none)); len(got) != 0 {
			t.Error(got)
		}
	})
	t.Run("pages, counts and page info are as of any connection", func(t *testing.T) {
		first, after := all, all
		first.First = servicetest.Pointer(2)
		p := f.MustList(first)
		more, err := p.PageInfo().HasNextPage(context.Background())
		if got := servicetest.PageNames(p); !slices.Equal(got, []string{"a", "b"}) || !more || err != nil {
			t.Error(got, more, err)
		}
		if n, err := p.TotalCount(context.Background()); n != 4 || err != nil {
			t.Error(n, err)
		}
		after.After = p.PageInfo().EndCursor()
		p = f.MustList(after)
		before, err := p.PageInfo().HasPreviousPage(context.Background())
		if got := servicetest.PageNames(p); !slices.Equal(got, []string{"c", "d"}) || !before || err != nil {
			t.Error(got, before, err)
		}
		last := all
		last.Last = servicetest.Pointer(3)
		if got := servicetest.PageNames(f.MustList(last)); !slices.Equal(got, []string{"b", "c", "d"}) {
			t.Error(got)
		}
	})
	t.Run("another order", func(t *testing.T) {
		down := all
		down.OrderBy = []query.Order{{Field: "name", Descending: true}}
		down.First = servicetest.Pointer(3)
		if got := servicetest.PageNames(f.MustList(down)); !slices.Equal(got, []string{"d", "c", "b"}) {
			t.Error(got)
		}
	})
	t.Run("too many names, and names without a namespace, are refused", func(t *testing.T) {
		if _, err := f.Reader.List(context.Background(), query.ListRequest{Kind: "Widget", Namespace: all.Namespace, Names: make([]string, filter.MaxValues+1)}); err == nil {
			t.Error("too many names")
		}
		if _, err := f.Reader.List(context.Background(), query.ListRequest{Kind: "Widget", Names: all.Names}); err == nil {
			t.Error("no namespace")
		}
	})
}

func FuzzCursor(f *testing.F) {
	f.Add("AQ")
	f.Add("")
	f.Add("AYFOdZcCZGVmYXVsdAACYQA")
	fix := &servicetest.Fixture{}
	f.Fuzz(func(t *testing.T, cursor string) {
		if fix.Service == nil || fix.T != t {
			fix = servicetest.Setup(t)
		}
		_, _ = fix.Reader.List(context.Background(), query.ListRequest{Kind: "Widget", After: &cursor})
	})
}

func FuzzGlobalID(f *testing.F) {
	f.Add(kind.GlobalID(backend.Key{Kind: "Widget", Namespace: "default", Name: "a"}))
	f.Add("AQ")
	f.Fuzz(func(t *testing.T, id string) {
		key, err := kind.ParseGlobalID(id)
		if err == nil && kind.GlobalID(key) != id {
			t.Errorf("%q reads as %v, which is %q", id, key, kind.GlobalID(key))
		}
	})
}
