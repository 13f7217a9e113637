package plan_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/query"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

// counting is a store that counts the resources which it hands out.
type counting struct {
	*memory.Store
	resources int
}

func (s *counting) Ranges(ctx context.Context, rs []backend.Range) ([]backend.Page, error) {
	pages, err := s.Store.Ranges(ctx, rs)
	for i := range pages {
		if !rs[i].Deleting {
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

// The work of a list from a store grows with the names that its filter keeps, not with what there is.
func TestChoice_AFilterOfNamesReadsNoMoreThanItKeeps(t *testing.T) {
	f := servicetest.Setup(t)
	for i := range 300 {
		id := kind.Identity{Kind: "Widget", Namespace: new(fmt.Sprintf("ns%d", i%3)), Name: fmt.Sprintf("n%03d", i)}
		if _, err := f.Writer.Create(t.Context(), service.CreateRequest{Identity: id, Spec: map[string]any{"title": "A", "weight": 100 + i}}); err != nil {
			t.Fatal(err)
		}
	}
	store := &counting{Store: f.Store}
	s, err := service.New(service.Config{Kinds: []descriptor.Kind{servicetest.Widget(), servicetest.Cluster()}, Store: store})
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
	} {
		store.resources = 0
		page, err := s.Reader.List(t.Context(), query.ListRequest{Kind: "Widget", Namespace: c.namespace, Filter: c.filter})
		if err != nil || len(page.Edges) != c.keeps {
			t.Errorf("%s: %d resources, %v; want %d", name, len(page.Edges), err, c.keeps)
		}
		if store.resources > c.max {
			t.Errorf("%s: %d resources were read; want at most %d", name, store.resources, c.max)
		}
	}
}

func TestChoice_AResourceWhoseRowMovesWhileAPageIsReadIsOnItOnce(t *testing.T) {
	f := servicetest.Setup(t)
	const all = 700 // are more than one step
	for i := range all {
		f.CreateWidget(fmt.Sprintf("n%04d", i), fmt.Sprintf(`{"title":"t","weight":%d}`, 100+i))
		f.CreateWidget(fmt.Sprintf("o%04d", i), `{"title":"t"}`)
	}
	store := &servicetest.MovingStore{Store: f.Store}
	s, err := service.New(service.Config{Kinds: []descriptor.Kind{servicetest.Widget(), servicetest.Cluster()}, Store: store})
	if err != nil {
		t.Fatal(err)
	}
	for _, filter := range []string{`{"spec":{"weight":{"gte":100}}}`, `{"spec":{"weight":{"gte":100},"title":{"eq":"t"}}}`} {
		for _, order := range [][]query.Order{nil, {{Field: "spec.weight"}}, {{Field: "createdAt"}}} {
			store.Then = func() { rewriteWeight(f, 100+all) }
			page, err := s.Reader.List(t.Context(), query.ListRequest{Kind: "Widget", First: servicetest.Pointer(query.MaxPage), Filter: json.RawMessage(filter), OrderBy: order})
			if err != nil || store.Then != nil || len(page.Edges) != all {
				t.Errorf("%s %v: %d resources, %v; want %d", filter, order, len(page.Edges), err, all)
			}
			rewriteWeight(f, 100)
		}
	}
}

// rewriteWeight changes the weight of n0000.
func rewriteWeight(f *servicetest.Fixture, weight int) {
	f.T.Helper()
	if _, err := f.Writer.Upsert(context.Background(), service.UpsertRequest{Identity: servicetest.Named("n0000"), Spec: map[string]any{"title": "t", "weight": weight}}); err != nil {
		f.T.Fatal(err)
	}
}
