package query_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/query"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

// keyed notes how many keys each call of Get asks for. It answers at most a
// number of them at once, if one is set, as a store does whose page is full, and
// cannot decode what it has under one name.
type keyed struct {
	*memory.Store
	most   int
	broken string
	calls  []int
}

func (s *keyed) Get(ctx context.Context, keys ...backend.Key) ([]*backend.Resource, error) {
	s.calls = append(s.calls, len(keys))
	if s.most > 0 {
		keys = keys[:min(s.most, len(keys))]
	}
	got, err := s.Store.Get(ctx, keys...)
	for i, key := range keys {
		if key.Name != s.broken {
			continue
		}
		if len(keys) == 1 {
			return nil, fmt.Errorf("decode: %w", backend.ErrUnreadable)
		}
		got[i] = nil
	}
	return got, err
}

func names(from, to int) (out []string) {
	for i := from; i < to; i++ {
		out = append(out, fmt.Sprintf("w%04d", i))
	}
	return out
}

func TestList_ListsThatNameTheirResourcesAreReadByOneCall(t *testing.T) {
	f := servicetest.Setup(t)
	for _, name := range names(0, 12) {
		f.CreateWidget(name, `{"title":"A"}`)
	}
	f.Damage("w0003")
	f.Damage("w0010")
	const broken = "w0011"
	for _, c := range []struct {
		name  string
		lists [][]string
		most  int // that the store answers at once, 0 for all
		calls []int
	}{
		{"one list", [][]string{names(0, 6)}, 0, []int{6}},
		{"several lists", [][]string{names(0, 3), names(6, 9), names(9, 12)}, 0, []int{9}},
		{"lists that share resources", [][]string{names(0, 4), names(2, 6), names(0, 4)}, 0, []int{6}},
		{"an unreadable one alone", [][]string{{"w0003"}}, 0, []int{1}},
		{"one alone that the store cannot decode", [][]string{{broken}, {broken}}, 0, []int{1}},
		{"one among others that the store cannot decode", [][]string{names(9, 12), {broken}}, 0, []int{3}},
		{"one that the store cannot decode, at the end of a page", [][]string{names(9, 12)}, 2, []int{3, 1}},
		{"names of nothing", [][]string{names(100, 105), {}, names(103, 108)}, 0, []int{8}},
		{"a store that answers half", [][]string{names(0, 6), names(6, 8)}, 4, []int{8, 4}},
		{"a store that answers one at a time", [][]string{names(2, 5), {"w0010"}}, 1, []int{4, 3, 2, 1}},
		{"a full call", [][]string{names(0, 100), names(100, 200), names(200, 300), names(300, 400), names(400, 500), names(500, 600), names(600, 700), names(700, 800), names(800, 900), names(900, 1000)}, 0, []int{1000}},
		{"more keys than one call takes", [][]string{names(0, 100), names(100, 200), names(200, 300), names(300, 400), names(400, 500), names(500, 600), names(600, 700), names(700, 800), names(800, 900), names(900, 1000), names(1000, 1010)}, 0, []int{1001, 9}},
	} {
		t.Run(c.name, func(t *testing.T) {
			store := &keyed{Store: f.Store, most: c.most, broken: broken}
			svc, err := service.New(service.Config{Kinds: []descriptor.Kind{servicetest.Widget()}, Store: store})
			if err != nil {
				t.Fatal(err)
			}
			var reqs []query.ListRequest
			for _, list := range c.lists {
				reqs = append(reqs, query.ListRequest{Kind: "Widget", Namespace: servicetest.Pointer("default"), Names: list})
			}
			pages, errs := svc.Reader.ListMany(t.Context(), reqs)
			for i, list := range c.lists {
				var want []string
				for _, name := range list {
					if name < broken && name != "w0003" && name != "w0010" {
						want = append(want, name)
					}
				}
				if errs[i] != nil {
					t.Fatalf("list %d: %v", i, errs[i])
				}
				if got := servicetest.PageNames(pages[i]); !slices.Equal(got, want) {
					t.Errorf("list %d: %v, want %v", i, got, want)
				}
			}
			if !slices.Equal(store.calls, c.calls) {
				t.Errorf("calls of %v keys, want %v", store.calls, c.calls)
			}
		})
	}
	t.Run("a list that is refused leaves the others alone", func(t *testing.T) {
		store := &keyed{Store: f.Store}
		svc, err := service.New(service.Config{Kinds: []descriptor.Kind{servicetest.Widget()}, Store: store})
		if err != nil {
			t.Fatal(err)
		}
		pages, errs := svc.Reader.ListMany(t.Context(), []query.ListRequest{
			{Kind: "Widget", Namespace: servicetest.Pointer("default"), Names: names(0, 101)},
			{Kind: "Widget", Namespace: servicetest.Pointer("default"), Names: names(0, 2)},
		})
		if e := servicetest.WantCode(t, errs[0], failure.CodeLimitExceeded); e.Path != "names" || pages[0] != nil {
			t.Errorf("%+v", e)
		}
		if errs[1] != nil || len(pages[1].Edges) != 2 || !slices.Equal(store.calls, []int{2}) {
			t.Errorf("%v, calls of %v keys", errs[1], store.calls)
		}
	})
}
