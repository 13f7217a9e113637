package service_test

import (
	"context"
	"fmt"
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
