package query_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/query"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

// item is a widget as the plain sort in memory sees it; nil is null.
type item struct {
	ns, name string
	title    string
	colour   *string
	weight   *int
	tags     []string
	tier     string // a label; empty if it is not there
	created  int64  // ns
}

func (i item) key() string { return i.ns + "/" + i.name }

// effective is the colour with its default, by its place in the enum.
func (i item) effective() int {
	if i.colour != nil && *i.colour == "dark-red" {
		return 0
	}
	return 1
}

func (i item) spec() map[string]any {
	spec := map[string]any{"title": i.title, "tags": i.tags}
	if i.colour != nil {
		spec["colour"] = *i.colour
	}
	if i.weight != nil {
		spec["weight"] = *i.weight
	}
	return spec
}

// oracle holds the set and what queries mean, in the plainest words.
type oracle struct {
	rnd   *rand.Rand
	items map[string]item
}

func (o *oracle) random(name string) item {
	i := item{ns: "ns" + strconv.Itoa(o.rnd.IntN(2)), name: name, title: string(rune('a' + o.rnd.IntN(4)))}
	if o.rnd.IntN(3) > 0 {
		i.colour = servicetest.Pointer([]string{"dark-red", "blue"}[o.rnd.IntN(2)])
	}
	if o.rnd.IntN(3) > 0 {
		i.weight = servicetest.Pointer(100 + o.rnd.IntN(5))
	}
	i.tier = []string{"", "web", "db"}[o.rnd.IntN(3)]
	for _, tag := range []string{"x", "y"} {
		if o.rnd.IntN(2) == 0 {
			i.tags = append(i.tags, tag)
		}
	}
	return i
}

// condition is a filter and what it means.
type condition struct {
	filter  map[string]any
	matches func(item) bool
}

func (o *oracle) condition(depth int) condition {
	if depth > 0 && o.rnd.IntN(2) == 0 {
		a, b := o.condition(depth-1), o.condition(depth-1)
		switch o.rnd.IntN(3) {
		case 0:
			return condition{map[string]any{"and": []any{a.filter, b.filter}}, func(i item) bool { return a.matches(i) && b.matches(i) }}
		case 1:
			return condition{map[string]any{"or": []any{a.filter, b.filter}}, func(i item) bool { return a.matches(i) || b.matches(i) }}
		}
		return condition{map[string]any{"not": a.filter}, func(i item) bool { return !a.matches(i) }}
	}
	of := func(field, op string, value any) map[string]any {
		return map[string]any{"spec": map[string]any{field: map[string]any{op: value}}}
	}
	w, s := 100+o.rnd.IntN(5), string(rune('a'+o.rnd.IntN(4)))
	tier := func(op string, value any) map[string]any {
		return map[string]any{"labels": []any{map[string]any{"key": "tier", op: value}}}
	}
	weight := func(matches func(int) bool) func(item) bool {
		return func(i item) bool { return i.weight != nil && matches(*i.weight) }
	}
	all := []condition{
		{of("weight", "eq", w), weight(func(x int) bool { return x == w })},
		{of("weight", "isNull", true), func(i item) bool { return i.weight == nil }},
		{of("weight", "isNull", false), func(i item) bool { return i.weight != nil }},
		{of("colour", "isNull", true), func(item) bool { return false }}, // it has a default
		{of("tags", "isNull", true), func(i item) bool { return len(i.tags) == 0 }},
		{of("weight", "ne", w), func(i item) bool { return i.weight == nil || *i.weight != w }},
		{of("weight", "lt", w), weight(func(x int) bool { return x < w })},
		{of("weight", "lte", w), weight(func(x int) bool { return x <= w })},
		{of("weight", "gt", w), weight(func(x int) bool { return x > w })},
		{of("weight", "gte", w), weight(func(x int) bool { return x >= w })},
		{of("weight", "in", []int{100, w}), weight(func(x int) bool { return x == 100 || x == w })},
		{of("weight", "notIn", []int{100, w}), func(i item) bool { return i.weight == nil || *i.weight != 100 && *i.weight != w }},
		{of("colour", "notIn", []string{"blue"}), func(i item) bool { return i.effective() == 0 }},
		{of("weight", "in", []int{}), func(item) bool { return false }},
		{map[string]any{"or": []any{}}, func(item) bool { return false }},
		{of("title", "startsWith", s), func(i item) bool { return strings.HasPrefix(i.title, s) }},
		{of("title", "contains", s), func(i item) bool { return strings.Contains(i.title, s) }},
		{of("colour", "eq", "blue"), func(i item) bool { return i.effective() == 1 }},
		{of("colour", "ne", "blue"), func(i item) bool { return i.effective() == 0 }},
		{of("tags", "hasAll", []string{"x", "y"}), func(i item) bool { return len(i.tags) == 2 }},
		{of("tags", "hasAny", []string{"x", "z"}), func(i item) bool { return slices.Contains(i.tags, "x") }},
		{of("tags", "hasNone", []string{"x"}), func(i item) bool { return !slices.Contains(i.tags, "x") }},
		{tier("eq", "web"), func(i item) bool { return i.tier == "web" }},
		{tier("in", []any{"web"}), func(i item) bool { return i.tier == "web" }},
		{tier("in", []any{"web", "db"}), func(i item) bool { return i.tier != "" }},
		{tier("ne", "web"), func(i item) bool { return i.tier != "web" }},
		{map[string]any{"name": map[string]any{"gte": "n5"}}, func(i item) bool { return i.name >= "n5" }},
		{map[string]any{"name": map[string]any{"eq": "n5"}}, func(i item) bool { return i.name == "n5" }},
		{map[string]any{"name": map[string]any{"in": []string{"n7", "n1", "n1", "Bad Name"}}}, func(i item) bool { return i.name == "n7" || i.name == "n1" }},
		{map[string]any{"name": map[string]any{"startsWith": "n1"}}, func(i item) bool { return strings.HasPrefix(i.name, "n1") }},
		{map[string]any{"name": map[string]any{"gt": "n1", "lte": "n3"}}, func(i item) bool { return i.name > "n1" && i.name <= "n3" }},
		{map[string]any{"name": map[string]any{"gt": "n3", "lt": "n1"}}, func(item) bool { return false }},
		{map[string]any{"namespace": map[string]any{"in": []string{"ns0"}}}, func(i item) bool { return i.ns == "ns0" }},
		{map[string]any{"namespace": map[string]any{"startsWith": "ns"}}, func(item) bool { return true }},
		{map[string]any{"namespace": map[string]any{"gte": "ns1"}}, func(i item) bool { return i.ns >= "ns1" }},
		{map[string]any{"namespace": map[string]any{"eq": "ns1"}, "name": map[string]any{"startsWith": "n2"}}, func(i item) bool { return i.ns == "ns1" && strings.HasPrefix(i.name, "n2") }},
		{map[string]any{"spec": map[string]any{"weight": map[string]any{"gt": 100, "lt": w}}}, weight(func(x int) bool { return x > 100 && x < w })},
		{map[string]any{"spec": map[string]any{"weight": map[string]any{"gte": w, "lte": 102}}}, weight(func(x int) bool { return x >= w && x <= 102 })},
		{map[string]any{"spec": map[string]any{"title": map[string]any{"startsWith": s, "gt": s + "b"}}}, func(i item) bool { return strings.HasPrefix(i.title, s) && i.title > s+"b" }},
		{map[string]any{"namespace": map[string]any{"eq": "ns1"}}, func(i item) bool { return i.ns == "ns1" }},
	}
	return all[o.rnd.IntN(len(all))]
}

// orders returns a random order and its comparison.
func (o *oracle) orders() ([]query.Order, func(a, b item) int) {
	var orders []query.Order
	var compares []func(a, b item) int
	null := func(a, b *int) int { // nulls first
		switch {
		case a == nil && b == nil:
			return 0
		case a == nil:
			return -1
		case b == nil:
			return 1
		}
		return cmp.Compare(*a, *b)
	}
	by := map[string]func(a, b item) int{
		"spec.title":  func(a, b item) int { return cmp.Compare(a.title, b.title) },
		"spec.colour": func(a, b item) int { return cmp.Compare(a.effective(), b.effective()) },
		"spec.weight": func(a, b item) int { return null(a.weight, b.weight) },
		"name":        func(a, b item) int { return cmp.Compare(a.name, b.name) },
		"createdAt":   func(a, b item) int { return cmp.Compare(a.created, b.created) },
	}
	fields := []string{"spec.title", "spec.colour", "spec.weight", "name", "createdAt"}
	for range o.rnd.IntN(3) {
		f, descending := fields[o.rnd.IntN(len(fields))], o.rnd.IntN(2) == 0
		orders = append(orders, query.Order{Field: f, Descending: descending})
		compares = append(compares, func(a, b item) int {
			if descending {
				return -by[f](a, b)
			}
			return by[f](a, b)
		})
	}
	return orders, func(a, b item) int {
		for _, c := range compares {
			if r := c(a, b); r != 0 {
				return r
			}
		}
		return cmp.Or(cmp.Compare(a.ns, b.ns), cmp.Compare(a.name, b.name))
	}
}

// write stores an item and says when it was created.
func (f *fixture) write(i item) (created int64) {
	f.T.Helper()
	req := service.UpsertRequest{Identity: kind.Identity{Kind: "Widget", Namespace: &i.ns, Name: i.name}, Spec: i.spec()}
	if i.tier != "" {
		req.Labels = service.Optional[[]service.Label]{Set: true, Value: []service.Label{{Key: "tier", Value: i.tier}}}
	}
	out, err := f.Writer.Upsert(context.Background(), req)
	if err != nil {
		f.T.Fatal(err)
	}
	return out.Resource.Stored.CreatedAt.UnixNano()
}

func TestList_ListsAreThoseOfAPlainSortInMemory(t *testing.T) {
	t.Parallel()
	t.Run("from the store", func(t *testing.T) { testLists(t, setup) })
	t.Run("from the index", func(t *testing.T) { testLists(t, setupIndexed) })
}

func testLists(t *testing.T, setup func(*testing.T) *fixture) {
	seed := uint64(20261121)
	if s, err := strconv.ParseUint(os.Getenv("SLUICE_TEST_SEED"), 10, 64); err == nil {
		seed = s
	}
	for round := range 40 {
		o := &oracle{rnd: rand.New(rand.NewPCG(seed, uint64(round))), items: map[string]item{}}
		f := setup(t)
		for i := range 10 + o.rnd.IntN(50) {
			it := o.random("n" + strconv.Itoa(i))
			it.created = f.write(it)
			o.items[it.key()] = it
		}
		for range 10 {
			cond := o.condition(2)
			orders, compare := o.orders()
			req := query.ListRequest{Filter: cond.filter, OrderBy: orders}
			if o.rnd.IntN(3) == 0 {
				req.Namespace = servicetest.Pointer("ns0")
			}
			o.check(f, req, cond.matches, compare, fmt.Sprintf("seed %d round %d: %s", seed, round, text(req)))
		}
	}
}

// What has one label is read in the order of creation along rows of its own, also where
// more are created at once than are turned round in one piece.
func TestList_TheNewestOfALabelAreThoseOfAPlainSort(t *testing.T) {
	t.Parallel()
	for round := range 12 {
		seed := uint64(20261123)
		o := &oracle{rnd: rand.New(rand.NewPCG(seed, uint64(round))), items: map[string]item{}}
		var now atomic.Int64
		now.Store(1_700_000_000_000)
		f := setupOn(t, memory.Config{Rand: rand.New(rand.NewPCG(1, 2)), Clock: func() time.Time { return time.UnixMilli(now.Load()) }})
		f.ServeIndexed()
		often := []int{1, 20, 300}[round%3]
		for i := range 300 {
			if i%often == 0 {
				now.Add(1)
			}
			it := o.random("n" + strconv.Itoa(i))
			it.created = f.write(it)
			o.items[it.key()] = it
		}
		now.Add(1000) // what is written while pages are read is newer
		for range 12 {
			cond := condition{map[string]any{"labels": []any{map[string]any{"key": "tier", "eq": "web"}}}, func(i item) bool { return i.tier == "web" }}
			if o.rnd.IntN(2) == 0 {
				more := o.condition(1)
				both := map[string]any{"and": []any{cond.filter, more.filter}}
				if more.filter["labels"] == nil && o.rnd.IntN(2) == 0 {
					both = maps.Clone(more.filter)
					both["labels"] = cond.filter["labels"]
				}
				cond = condition{both, func(i item) bool { return i.tier == "web" && more.matches(i) }}
			}
			descending := o.rnd.IntN(2) == 0
			orders, compare := []query.Order{{Field: "createdAt", Descending: descending}}, func(a, b item) int { return 0 }
			if o.rnd.IntN(3) == 0 {
				var more []query.Order
				more, compare = o.orders()
				orders = append(orders, more...)
			}
			then := func(a, b item) int {
				by := cmp.Compare(a.created, b.created)
				if descending {
					by = -by
				}
				return cmp.Or(by, compare(a, b), cmp.Compare(a.ns, b.ns), cmp.Compare(a.name, b.name))
			}
			req := query.ListRequest{Filter: cond.filter, OrderBy: orders}
			if o.rnd.IntN(3) == 0 {
				req.Namespace = servicetest.Pointer("ns0")
			}
			o.check(f, req, cond.matches, then, fmt.Sprintf("seed %d round %d: %s", seed, round, text(req)))
		}
	}
}

func text(v any) string {
	var b bytes.Buffer
	_ = json.NewEncoder(&b).Encode(v)
	return b.String()
}

// check walks a query by random pages in one direction while others are
// written, and holds it against the sort: what is not written meanwhile comes
// exactly once and in order.
func (o *oracle) check(f *fixture, req query.ListRequest, matches func(item) bool, compare func(a, b item) int, what string) {
	f.T.Helper()
	var want []item
	for _, i := range o.items {
		if matches(i) && (req.Namespace == nil || *req.Namespace == i.ns) {
			want = append(want, i)
		}
	}
	slices.SortFunc(want, compare)
	if n, err := f.MustList(req).TotalCount(context.Background()); err != nil || n != len(want) {
		f.T.Fatalf("%s: totalCount %d %v, want %d", what, n, err, len(want))
	}
	backward := o.rnd.IntN(2) == 0
	var got []string
	var churn []string
	for page := 0; ; page++ {
		size := 1 + o.rnd.IntN(7)
		step := req
		if backward {
			step.Last = &size
		} else {
			step.First = &size
		}
		p := f.MustList(step)
		var names []string
		for _, e := range p.Edges {
			if r := e.Resource.Stored; !strings.HasPrefix(r.Name, "churn") {
				names = append(names, r.Namespace+"/"+r.Name)
			}
		}
		more, err := p.PageInfo().HasNextPage(context.Background())
		if backward {
			got = append(names, got...)
			more, err = p.PageInfo().HasPreviousPage(context.Background())
			req.Before = p.PageInfo().StartCursor()
		} else {
			got = append(got, names...)
			req.After = p.PageInfo().EndCursor()
		}
		if err != nil || page > 200 {
			f.T.Fatalf("%s: page %d: %v", what, page, err)
		}
		if !more {
			break
		}
		it := o.random("churn" + strconv.Itoa(page))
		f.write(it)
		churn = append(churn, it.key())
	}
	for _, key := range churn {
		ns, name, _ := strings.Cut(key, "/")
		if _, err := f.Writer.Delete(context.Background(), service.DeleteRequest{Identity: kind.Identity{Kind: "Widget", Namespace: &ns, Name: name}}); err != nil {
			f.T.Fatal(err)
		}
	}
	if len(want) > 0 { // beyond the last page there is none, and something before it
		beyond := req
		if beyond.First = servicetest.Pointer(1); backward {
			beyond.First, beyond.Last = nil, servicetest.Pointer(1)
		}
		p := f.MustList(beyond)
		next, err := p.PageInfo().HasNextPage(context.Background())
		previous, failed := p.PageInfo().HasPreviousPage(context.Background())
		if len(p.Edges) > 0 || next != backward || previous == backward || err != nil || failed != nil {
			f.T.Fatalf("%s: beyond the last page, backward %v: %d edges, next %v %v, previous %v %v", what, backward, len(p.Edges), next, err, previous, failed)
		}
	}
	keys := make([]string, len(want))
	for i, w := range want {
		keys[i] = w.key()
	}
	if !slices.Equal(got, keys) {
		f.T.Fatalf("%s backward %v:\ngot  %v\nwant %v", what, backward, got, keys)
	}
}

func TestList_APageOfNoResourcesIsEmptyWhateverIsAskedFor(t *testing.T) {
	for name, setup := range map[string]func(*testing.T) *fixture{"store": setup, "index": setupIndexed} {
		t.Run(name, func(t *testing.T) {
			f := setup(t)
			f.CreateWidget("a", `{"title":"A","weight":100}`)
			for _, filter := range []string{`null`, `{"name":{"in":["a","b"]}}`, `{"spec":{"title":{"eq":"A"}}}`, `{"name":{"startsWith":"a"}}`} {
				for _, orders := range [][]query.Order{nil, {{Field: "spec.weight"}}, {{Field: "name", Descending: true}}} {
					req := query.ListRequest{Kind: "Widget", Namespace: servicetest.Pointer("default"), First: servicetest.Pointer(0), Filter: json.RawMessage(filter), OrderBy: orders}
					page := f.MustList(req)
					more, err := page.PageInfo().HasNextPage(t.Context())
					req.First = servicetest.Pointer(1)
					whole := f.MustList(req)
					req.After = whole.PageInfo().EndCursor()
					beyond := f.MustList(req)
					if previous, err := beyond.PageInfo().HasPreviousPage(t.Context()); len(whole.Edges) != 1 || len(beyond.Edges) != 0 || !previous || err != nil {
						t.Errorf("%s %v: behind the only one are %d, previous %v %v", filter, orders, len(beyond.Edges), previous, err)
					}
					if n, failed := page.TotalCount(t.Context()); len(page.Edges) != 0 || !more || n != 1 || err != nil || failed != nil {
						t.Errorf("%s %v: %d edges, more %v, %d in all, %v %v", filter, orders, len(page.Edges), more, n, err, failed)
					}
				}
			}
		})
	}
}

func TestList_FiltersAreHeldToTheirLimits(t *testing.T) {
	f := setup(t)
	deep := map[string]any{}
	for range 6 {
		deep = map[string]any{"not": deep}
	}
	many := make([]any, 51)
	for i := range many {
		many[i] = map[string]any{"name": map[string]any{"eq": "a"}}
	}
	values := make([]int, 101)
	for name, c := range map[string]struct {
		filter any
		code   failure.Code
	}{
		"depth":        {deep, failure.CodeLimitExceeded},
		"nodes":        {map[string]any{"or": many}, failure.CodeLimitExceeded},
		"values":       {map[string]any{"spec": map[string]any{"weight": map[string]any{"in": values}}}, failure.CodeLimitExceeded},
		"no index":     {map[string]any{"spec": map[string]any{"every": map[string]any{"eq": "1s"}}}, failure.CodeBadUserInput},
		"no field":     {map[string]any{"spec": map[string]any{"nothing": map[string]any{"eq": "1s"}}}, failure.CodeBadUserInput},
		"no operator":  {map[string]any{"name": map[string]any{"like": "a"}}, failure.CodeBadUserInput},
		"wrong value":  {map[string]any{"spec": map[string]any{"weight": map[string]any{"eq": map[string]any{}}}}, failure.CodeBadUserInput},
		"empty member": {map[string]any{"colour": 1}, failure.CodeBadUserInput},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := f.Reader.List(context.Background(), query.ListRequest{Kind: "Widget", Filter: c.filter})
			servicetest.WantCode(t, err, c.code)
		})
	}
	_, err := f.Reader.List(context.Background(), query.ListRequest{Kind: "Widget", OrderBy: []query.Order{{Field: "spec.tags"}}})
	servicetest.WantCode(t, err, failure.CodeBadUserInput)
	_, err = f.Reader.List(context.Background(), query.ListRequest{Kind: "Widget", OrderBy: make([]query.Order, 6)})
	servicetest.WantCode(t, err, failure.CodeLimitExceeded)
}

func FuzzFilter(f *testing.F) {
	f.Add(`{"spec":{"weight":{"gte":100}},"or":[{"name":{"startsWith":"n"}}]}`)
	f.Add(`{"labels":[{"key":"a","in":["b"]}],"not":{"createdAt":{"lt":"2026-01-01T00:00:00Z"}}}`)
	f.Fuzz(func(t *testing.T, filter string) {
		if !json.Valid([]byte(filter)) {
			return
		}
		fix := setup(t)
		fix.CreateWidget("a", `{"title":"A","weight":100}`)
		_, _ = fix.Reader.List(context.Background(), query.ListRequest{Kind: "Widget", Filter: json.RawMessage(filter)})
	})
}

func TestList_LabelsAreFilteredByTheirValues(t *testing.T) {
	f := setup(t)
	for name, labels := range map[string][]service.Label{
		"a": {{Key: "tier", Value: "web"}}, "b": {{Key: "tier", Value: "db"}, {Key: "zone", Value: "1"}}, "c": {{Key: "zone", Value: "2"}}, "d": nil,
	} {
		_, err := f.Writer.Create(t.Context(), service.CreateRequest{
			Identity: servicetest.Named(name), Metadata: service.Metadata{Labels: service.Optional[[]service.Label]{Set: true, Value: labels}}, Spec: json.RawMessage(`{"title":"t"}`),
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for filter, want := range map[string]string{
		`{"labels":[{"key":"tier","eq":"web"}]}`:                               "a",
		`{"labels":[{"key":"tier","ne":"web"}]}`:                               "b c d",
		`{"labels":[{"key":"tier","in":["web","db"]}]}`:                        "a b",
		`{"labels":[{"key":"tier","notIn":["web","x"]}]}`:                      "b c d",
		`{"labels":[{"key":"tier","isNull":false}]}`:                           "a b",
		`{"labels":[{"key":"tier","isNull":true}]}`:                            "c d",
		`{"labels":[{"key":"tier","isNull":false},{"key":"tier","ne":"web"}]}`: "b",
		`{"labels":[{"key":"zone","in":["1","2"]},{"key":"tier","ne":"db"}]}`:  "c",
	} {
		page, err := f.Reader.List(t.Context(), query.ListRequest{Kind: "Widget", Filter: json.RawMessage(filter)})
		if err != nil {
			t.Errorf("%s: %v", filter, err)
			continue
		}
		var got []string
		for _, e := range page.Edges {
			got = append(got, e.Resource.Stored.Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s keeps %q, want %q", filter, got, want)
		}
	}
	for _, filter := range []string{
		`{"labels":[{"key":"tier"}]}`, `{"labels":[{"key":"tier","eq":null}]}`, `{"labels":[{"key":"tier","eq":"a","ne":"b"}]}`, `{"conditions":[{"type":"Ready","status":{}}]}`, `{"conditions":[{"type":"Ready","reason":{"eq":null}}]}`, `{"conditions":[{"status":{"eq":"True"}}]}`,
	} {
		_, err := f.Reader.List(t.Context(), query.ListRequest{Kind: "Widget", Filter: json.RawMessage(filter)})
		servicetest.WantCode(t, err, failure.CodeBadUserInput)
	}
}
