package query_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/query"
	"github.com/sluicegw/sluice/backend/service/query/filter"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

// TestList_AFilterSeesNoValueThatIsLongerThanAnIndexTakes asks the store, the index in memory
// and each resource by itself. To all of them a value of more than 256 characters is absent.
func TestList_AFilterSeesNoValueThatIsLongerThanAnIndexTakes(t *testing.T) {
	ids := map[string]string{
		"a-short": "x", "b-256": strings.Repeat("x", 256), "c-256-of-four-bytes": strings.Repeat("\U0001F600", 256),
		"d-257": strings.Repeat("x", 257), "e-257-of-four-bytes": strings.Repeat("\U0001F600", 257), "f-1024": strings.Repeat("x", 1024), "g-absent": "",
	}
	names := []string{"a-short", "b-256", "c-256-of-four-bytes", "d-257", "e-257-of-four-bytes", "f-1024", "g-absent"}
	valued, null := names[:3], names[3:]
	for what, serve := range map[string]func(*servicetest.Fixture){
		"store": func(*servicetest.Fixture) {},
		"index": (*servicetest.Fixture).ServeIndexed,
	} {
		t.Run(what, func(t *testing.T) {
			widget := servicetest.Widget()
			widget.FilterableFields = []descriptor.FilterableField{{Path: "status.id", Sortable: true}}
			store := servicetest.OpenMemory(t)
			svc, err := service.New(service.Config{Kinds: []descriptor.Kind{widget}, Store: store})
			if err != nil {
				t.Fatal(err)
			}
			f := &servicetest.Fixture{Service: svc, T: t, Store: store}
			serve(f)
			for _, name := range names {
				created := f.CreateWidget(name, `{"title":"A"}`)
				if id := ids[name]; id != "" {
					_, err := f.Writer.UpdateStatus(t.Context(), service.StatusRequest{
						Identity:         servicetest.Named(name),
						ExpectedRevision: created.Resource.Stored.Revision.String(),
						Status:           map[string]any{"id": id},
					})
					if err != nil {
						t.Fatal(err)
					}
				}
			}
			k := compiled(t, widget)
			for _, c := range []struct {
				test map[string]any
				want []string
			}{
				{map[string]any{"isNull": true}, null},
				{map[string]any{"isNull": false}, valued},
				{map[string]any{"eq": ids["b-256"]}, []string{"b-256"}},
				{map[string]any{"ne": ids["b-256"]}, slices.Concat([]string{"a-short", "c-256-of-four-bytes"}, null)},
				{map[string]any{"in": []any{"x", ids["c-256-of-four-bytes"]}}, []string{"a-short", "c-256-of-four-bytes"}},
				{map[string]any{"startsWith": "xx"}, []string{"b-256"}},
				{map[string]any{"contains": "x"}, []string{"a-short", "b-256"}},
				{map[string]any{"gt": "x"}, []string{"b-256", "c-256-of-four-bytes"}},
				{map[string]any{"gte": "x", "lt": "y"}, []string{"a-short", "b-256"}},
				{map[string]any{"lte": ids["b-256"]}, []string{"a-short", "b-256"}},
			} {
				only := map[string]any{"status": map[string]any{"id": c.test}}
				what := fmt.Sprintf("%.60s", fmt.Sprint(c.test))
				if diff := cmp.Diff(c.want, found(t, f, query.ListRequest{Kind: "Widget", Filter: only})); diff != "" {
					t.Errorf("%s (-want +got):\n%s", what, diff)
				}
				not := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return slices.Contains(c.want, n) })
				if diff := cmp.Diff(not, found(t, f, query.ListRequest{Kind: "Widget", Filter: map[string]any{"not": only}})); diff != "" {
					t.Errorf("not %s (-want +got):\n%s", what, diff)
				}
				matcher, err := filter.Parse(k, only, failure.StoredNames)
				if err != nil {
					t.Fatal(err)
				}
				for _, name := range names {
					b, err := k.Body.Read(f.Stored(name))
					if err != nil {
						t.Fatal(err)
					}
					if got := matcher.Match(filter.Of(k, b)); got != slices.Contains(c.want, name) {
						t.Errorf("%s by itself: %s %v", what, name, got)
					}
				}
			}
			for _, desc := range []bool{false, true} {
				want := slices.Concat(null, valued)
				if desc {
					want = slices.Concat([]string{"c-256-of-four-bytes", "b-256", "a-short"}, null)
				}
				if diff := cmp.Diff(want, found(t, f, query.ListRequest{Kind: "Widget", OrderBy: []query.Order{{Field: "status.id", Descending: desc}}})); diff != "" {
					t.Errorf("order, descending %v (-want +got):\n%s", desc, diff)
				}
			}
			_, err = f.Reader.List(t.Context(), query.ListRequest{Kind: "Widget", Filter: map[string]any{"status": map[string]any{"id": map[string]any{"eq": ids["d-257"]}}}})
			if e := servicetest.WantCode(t, err, failure.CodeBadUserInput); !strings.Contains(e.Message, "at most 256 characters") {
				t.Error(e.Message)
			}
		})
	}
}

// found are the names that a list has, two at a time and read to its end; it is counted too.
func found(t *testing.T, f *servicetest.Fixture, req query.ListRequest) (names []string) {
	t.Helper()
	req.First = servicetest.Pointer(2)
	for {
		page, err := f.Reader.List(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		for i := range page.Edges {
			names = append(names, page.Edges[i].Resource.Stored.Name)
		}
		more, err := page.PageInfo().HasNextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !more {
			n, err := page.TotalCount(t.Context())
			if err != nil || n != len(names) {
				t.Errorf("counted %d, %v; %d were read", n, err, len(names))
			}
			return names
		}
		req.After = servicetest.Pointer(page.Cursor(len(page.Edges) - 1))
	}
}

// compiled is a kind as the service has it.
func compiled(t *testing.T, k descriptor.Kind) *kind.Kind {
	t.Helper()
	c, err := kind.Compile([]descriptor.Kind{k})
	if err != nil {
		t.Fatal(err)
	}
	return c.All()[0]
}
