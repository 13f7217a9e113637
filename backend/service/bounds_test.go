package service_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/query"
)

// counting is a store that counts the resources which it hands out.
type counting struct {
	*memory.Store
	resources int
}

func (s *counting) Ranges(ctx context.Context, rs []backend.Range) ([]backend.Page, error) {
	pages, err := s.Store.Ranges(ctx, rs)
	for i := range pages {
		if !strings.HasPrefix(rs[i].Index, "_") {
			s.resources += len(pages[i].Resources)
		}
	}
	return pages, err
}

func (s *counting) Get(ctx context.Context, keys ...backend.Key) ([]*backend.Resource, error) {
	got, err := s.Store.Get(ctx, keys...)
	s.resources += len(got)
	return got, err
}

// The work of a list grows with what its filter keeps, not with what there is.
func TestAFilterOfNamesOrOfARangeReadsNoMoreThanItKeeps(t *testing.T) {
	f := setup(t)
	for i := range 300 {
		id := kind.Identity{Kind: "Widget", Namespace: new(fmt.Sprintf("ns%d", i%3)), Name: fmt.Sprintf("n%03d", i)}
		if _, err := f.Create(t.Context(), anon, service.CreateRequest{Identity: id, Spec: map[string]any{"title": "A", "weight": 100 + i}}); err != nil {
			t.Fatal(err)
		}
	}
	store := &counting{Store: f.store}
	s, err := service.New(service.Config{Kinds: []descriptor.Kind{widget(), cluster()}, Store: store})
	if err != nil {
		t.Fatal(err)
	}
	of := func(path, op string, value any) map[string]any {
		return map[string]any{path: map[string]any{op: value}}
	}
	for name, c := range map[string]struct {
		filter     map[string]any
		namespace  *string
		keeps, max int
	}{
		"a name":                   {of("name", "eq", "n003"), new("ns0"), 1, 1},
		"names":                    {of("name", "in", []string{"n003", "n006", "gone"}), new("ns0"), 2, 3},
		"a name and its namespace": {map[string]any{"name": map[string]any{"eq": "n003"}, "namespace": map[string]any{"eq": "ns0"}}, nil, 1, 1},
		"a namespace":              {of("namespace", "eq", "ns1"), nil, 100, 100},
		"the beginning of a name":  {of("name", "startsWith", "n00"), new("ns0"), 4, 4},
		"an empty beginning":       {of("name", "startsWith", "n00"), new("empty"), 0, 0},
		"a range of names":         {map[string]any{"name": map[string]any{"gte": "n010", "lt": "n020"}}, new("ns0"), 3, 3},
		"a range with two ends":    {map[string]any{"spec": map[string]any{"weight": map[string]any{"gte": 200, "lt": 210}}}, nil, 10, 12},
	} {
		store.resources = 0
		page, err := s.List(t.Context(), anon, query.ListRequest{Kind: "Widget", Namespace: c.namespace, Filter: c.filter})
		if err != nil || len(page.Edges) != c.keeps {
			t.Errorf("%s: %d resources, %v; want %d", name, len(page.Edges), err, c.keeps)
		}
		if store.resources > c.max {
			t.Errorf("%s: %d resources were read; want at most %d", name, store.resources, c.max)
		}
	}
}

// Without an index in memory the planner chooses among the rows of the store: what a
// list looks at does not grow with what there is, whatever the filter and the order.
func TestFromAStoreTheNarrowestRunsAreRead(t *testing.T) {
	f := setup(t)
	for i := range 3000 {
		spec := map[string]any{"title": []string{"big", "large"}[i%2], "weight": 100 + i, "colour": "blue", "tags": []string{"even", "odd"}[i%2 : i%2+1]}
		if i < 10 {
			spec["title"], spec["tags"] = "small", []string{"even", "odd"}
		}
		id := kind.Identity{Kind: "Widget", Namespace: new(fmt.Sprintf("ns%d", i%2)), Name: fmt.Sprintf("n%04d", i)}
		if _, err := f.Create(t.Context(), anon, service.CreateRequest{Identity: id, Spec: spec}); err != nil {
			t.Fatal(err)
		}
	}
	var alternatives []string // of 500 values, which are more runs than are read
	for i := range 5 {
		var values []string
		for v := range query.MaxFilterValues {
			values = append(values, fmt.Sprint(100+100*i+v))
		}
		alternatives = append(alternatives, fmt.Sprintf(`{"spec":{"weight":{"in":[%s]}}}`, strings.Join(values, ",")))
	}
	for name, c := range map[string]struct {
		filter      string
		order       []query.Order
		by          string
		keeps, most int
	}{
		"in":                              {filter: `{"spec":{"weight":{"in":[100,101,9000]}}}`, by: "3 runs of spec.weight", keeps: 2, most: 2},
		"or":                              {filter: `{"or":[{"spec":{"title":{"eq":"small"}}},{"spec":{"weight":{"lt":105}}}]}`, by: "2 runs of", keeps: 10, most: 15},
		"two ends":                        {filter: `{"spec":{"weight":{"gte":200,"lt":210}}}`, by: "spec.weight, 10 rows", keeps: 10, most: 10},
		"the narrowest of two":            {filter: `{"spec":{"title":{"startsWith":"b"},"weight":{"gte":3000}}}`, by: "spec.weight, 100 rows", keeps: 50, most: 100},
		"the narrower of two values":      {filter: `{"spec":{"tags":{"hasAll":["even","odd"]},"title":{"eq":"small"}}}`, by: "spec.title", keeps: 10, most: 16},
		"one value, and fewer rows":       {filter: `{"spec":{"title":{"eq":"big"},"weight":{"gte":3080}}}`, by: "spec.weight, 20 rows", keeps: 10, most: 20},
		"one value, or too many":          {filter: fmt.Sprintf(`{"or":[%s],"spec":{"weight":{"eq":150}}}`, strings.Join(alternatives, ",")), by: "spec.weight", keeps: 1, most: 16},
		"half of all, by name":            {filter: `{"spec":{"weight":{"lt":2700}}}`, by: "order of names", keeps: 10, most: 40},
		"ascending":                       {order: []query.Order{{Field: "spec.weight"}}, by: "order of spec.weight", keeps: 10, most: 32},
		"descending":                      {order: []query.Order{{Field: "spec.weight", Descending: true}}, by: "order of spec.weight", keeps: 10, most: 32},
		"an order of few":                 {filter: `{"spec":{"title":{"eq":"small"}}}`, order: []query.Order{{Field: "spec.weight"}}, by: "spec.title", keeps: 10, most: 10},
		"an order of many":                {filter: `{"spec":{"title":{"eq":"big"}}}`, order: []query.Order{{Field: "spec.weight", Descending: true}}, by: "order of spec.weight", keeps: 10, most: 60},
		"an order of a range of it":       {filter: `{"spec":{"weight":{"gte":1600}}}`, order: []query.Order{{Field: "spec.weight"}}, by: "order of spec.weight", keeps: 10, most: 32},
		"the same, descending":            {filter: `{"spec":{"weight":{"gt":100,"lt":1600}}}`, order: []query.Order{{Field: "spec.weight", Descending: true}}, by: "order of spec.weight", keeps: 10, most: 32},
		"an order with names behind it":   {order: []query.Order{{Field: "spec.weight"}, {Field: "name"}}, by: "order of spec.weight", keeps: 10, most: 32},
		"names, descending, of one place": {filter: `{"namespace":{"eq":"ns1"}}`, order: []query.Order{{Field: "name", Descending: true}}, by: "order of names", keeps: 10, most: 16},
	} {
		for _, ahead := range []bool{false, true} {
			ctx, reads := query.WithExplanation(t.Context())
			req := query.ListRequest{Kind: "Widget", First: pointer(10), OrderBy: c.order, Ahead: ahead}
			if c.filter != "" {
				req.Filter = json.RawMessage(c.filter)
			}
			if c.keeps > 10 {
				req.First = &c.keeps
			}
			page, err := f.List(ctx, anon, req)
			if err != nil || len(page.Edges) != c.keeps {
				t.Errorf("%s: %d resources, %v; want %d", name, len(page.Edges), err, c.keeps)
				continue
			}
			if how := reads.Reads()[0]; how.Source != "store" || how.Looked > c.most || !strings.Contains(how.By, c.by) {
				t.Errorf("%s: %+v; want %s and at most %d", name, how, c.by, c.most)
			}
			if n, err := page.TotalCount(ctx); err != nil || len(reads.Reads()) != 2 || reads.Reads()[1].Returned != n {
				t.Errorf("%s: %d in all, %v, by %+v", name, n, err, reads.Reads())
			}
		}
	}
	// One without a weight comes before all others, and behind them in reverse.
	id := kind.Identity{Kind: "Widget", Namespace: new("ns0"), Name: "without"}
	if _, err := f.Create(t.Context(), anon, service.CreateRequest{Identity: id, Spec: map[string]any{"title": "none"}}); err != nil {
		t.Fatal(err)
	}
	for _, backward := range []bool{false, true} {
		req := query.ListRequest{Kind: "Widget", First: pointer(1), OrderBy: []query.Order{{Field: "spec.weight", Descending: backward}}}
		if backward {
			req.First, req.Last = nil, pointer(1)
		}
		page := f.list(req)
		if got := fmt.Sprint(pageNames(page)); got != "[without]" {
			t.Errorf("backward %v: %s comes first", backward, got)
		}
	}
}

// moving is a store in which something happens after the first step that reads resources.
type moving struct {
	*memory.Store
	then func()
}

func (s *moving) Ranges(ctx context.Context, list []backend.Range) ([]backend.Page, error) {
	pages, err := s.Store.Ranges(ctx, list)
	if s.then != nil && slices.ContainsFunc(pages, func(p backend.Page) bool { return len(p.Resources) > 0 }) {
		then := s.then
		s.then = nil
		then()
	}
	return pages, err
}

func TestAResourceWhoseRowMovesWhileAPageIsReadIsOnItOnce(t *testing.T) {
	f := setup(t)
	const all = 700 // are more than one step
	for i := range all {
		f.create(fmt.Sprintf("n%04d", i), fmt.Sprintf(`{"title":"t","weight":%d}`, 100+i))
		f.create(fmt.Sprintf("o%04d", i), `{"title":"t"}`)
	}
	store := &moving{Store: f.store}
	s, err := service.New(service.Config{Kinds: []descriptor.Kind{widget(), cluster()}, Store: store})
	if err != nil {
		t.Fatal(err)
	}
	for _, filter := range []string{`{"spec":{"weight":{"gte":100}}}`, `{"spec":{"weight":{"gte":100},"title":{"eq":"t"}}}`} {
		for _, order := range [][]query.Order{nil, {{Field: "spec.weight"}}, {{Field: "createdAt"}}} {
			store.then = func() { f.rewriteWeight(100 + all) }
			page, err := s.List(t.Context(), anon, query.ListRequest{Kind: "Widget", First: pointer(query.MaxPage), Filter: json.RawMessage(filter), OrderBy: order})
			if err != nil || store.then != nil || len(page.Edges) != all {
				t.Errorf("%s %v: %d resources, %v; want %d", filter, order, len(page.Edges), err, all)
			}
			f.rewriteWeight(100)
		}
	}
}

// rewriteWeight changes the weight of n0000.
func (f *fixture) rewriteWeight(weight int) {
	f.t.Helper()
	if _, err := f.Upsert(context.Background(), anon, service.UpsertRequest{Identity: named("n0000"), Spec: map[string]any{"title": "t", "weight": weight}}); err != nil {
		f.t.Fatal(err)
	}
}
