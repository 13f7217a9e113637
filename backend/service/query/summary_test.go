package query_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/query"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

// summaryKeys are keys and what they are of an item; empty stands for none.
func summaryKeys() map[string]func(item) string {
	return map[string]func(item) string{
		"namespace":   func(i item) string { return i.ns },
		"labels.tier": func(i item) string { return i.tier },
		"spec.title":  func(i item) string { return i.title },
		"spec.colour": func(i item) string { return []string{"DARK_RED", "BLUE"}[i.effective()] },
		"spec.weight": func(i item) string {
			if i.weight == nil {
				return ""
			}
			return strconv.Itoa(*i.weight)
		},
		"spec.heavy": func(item) string { return "" },
	}
}

// groups returns the groups of a summary as text.
func groups(s *query.Summary) map[string]int {
	out := map[string]int{}
	for _, g := range s.Groups {
		var words []string
		for i, v := range g.Values {
			word := ""
			if v != nil {
				word = *v
			}
			words = append(words, s.Paths[i]+"="+word)
		}
		out[strings.Join(words, " ")] = g.Count
	}
	return out
}

func TestSummary_SummariesAreThoseOfAPlainCount(t *testing.T) {
	for name, setup := range map[string]func(*testing.T) *fixture{"from the store": setup, "from the index": setupIndexed} {
		t.Run(name, func(t *testing.T) {
			for round := range 30 {
				o := &oracle{rnd: rand.New(rand.NewPCG(20261125, uint64(round))), items: map[string]item{}}
				f := setup(t)
				for i := range o.rnd.IntN(60) {
					it := o.random("n" + strconv.Itoa(i))
					f.write(it)
					o.items[it.key()] = it
				}
				for range 10 {
					o.summarise(f)
				}
			}
		})
	}
}

// summarise holds a random summary against a count of the items.
func (o *oracle) summarise(f *fixture) {
	f.T.Helper()
	keys := summaryKeys()
	all := []string{"namespace", "labels.tier", "spec.title", "spec.colour", "spec.weight", "spec.heavy"}
	o.rnd.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	req := query.SummaryRequest{Kind: "Widget", By: all[:o.rnd.IntN(4)]}
	cond := condition{nil, func(item) bool { return true }}
	if o.rnd.IntN(2) == 0 {
		cond = o.condition(1)
		req.Filter = cond.filter
	}
	if o.rnd.IntN(3) == 0 {
		req.Namespace = servicetest.Pointer("ns0")
	}
	want := map[string]int{}
	for _, i := range o.items {
		if cond.matches(i) && (req.Namespace == nil || i.ns == *req.Namespace) {
			var words []string
			for _, path := range req.By {
				words = append(words, path+"="+keys[path](i))
			}
			want[strings.Join(words, " ")]++
		}
	}
	got, err := f.Reader.Summary(f.T.Context(), req)
	if err != nil {
		f.T.Fatalf("%v: %v", req, err)
	}
	if diff := cmp.Diff(want, groups(got)); diff != "" {
		f.T.Fatalf("%s: %s", text(req), diff)
	}
}

func TestSummary_ASummaryLeavesOutWhatHasExpiredOrCannotBeRead(t *testing.T) {
	for name, indexed := range map[string]bool{"from the store": false, "from the index": true} {
		t.Run(name, func(t *testing.T) {
			var now atomic.Int64
			now.Store(1_700_000_000_000)
			f := setupOn(t, memory.Config{Rand: rand.New(rand.NewPCG(1, 2)), Clock: func() time.Time { return time.UnixMilli(now.Load()) }, PurgeInterval: time.Hour})
			for i := range 6 {
				f.CreateWidget(fmt.Sprint("w", i), fmt.Sprintf(`{"title":"t%d"}`, i%2))
			}
			for _, name := range []string{"w0", "w2"} { // all but one of t0
				stored := f.Stored(name)
				f.Put(stored.Key, backend.Put{UID: stored.UID, Body: stored.Body, ExpiresAt: time.UnixMilli(now.Load() + 500)})
			}
			damaged := f.Stored("w1")
			f.Put(damaged.Key, backend.Put{UID: damaged.UID, Body: backend.EncodeBody([]byte(`{"spec":`))})
			now.Add(1000)
			if indexed {
				f.ServeIndexed()
			}
			for _, req := range []query.SummaryRequest{{By: []string{"spec.title"}}, {By: []string{"spec.title"}, Namespace: servicetest.Pointer("default")}} {
				req.Kind = "Widget"
				got, err := f.Reader.Summary(t.Context(), req)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(map[string]int{"spec.title=t0": 1, "spec.title=t1": 2}, groups(got)); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

func TestSummary_ASummaryIsInTheOrderOfItsValues(t *testing.T) {
	f := setupIndexed(t)
	for i, weight := range []string{"", `,"weight":1000`, `,"weight":200`, `,"weight":200`} {
		f.CreateWidget(fmt.Sprint("w", i), `{"title":"t"`+weight+`}`)
	}
	got, err := f.Reader.Summary(t.Context(), query.SummaryRequest{Kind: "Widget", By: []string{"spec.weight"}})
	if err != nil {
		t.Fatal(err)
	}
	var values []string
	for _, g := range got.Groups {
		value := "none"
		if g.Values[0] != nil {
			value = *g.Values[0]
		}
		values = append(values, fmt.Sprint(value, ":", g.Count))
	}
	if want := []string{"none:1", "200:2", "1000:1"}; !slices.Equal(values, want) {
		t.Errorf("%v, want %v", values, want)
	}
}

func TestSummary_ASummaryByOneKeyCostsItsGroups(t *testing.T) {
	f := setupIndexed(t)
	spent := func(req query.SummaryRequest) (steps int64) {
		b := budget.New(budget.Limits{})
		if _, err := f.Reader.Summary(budget.With(context.Background(), b), req); err != nil {
			t.Fatal(err)
		}
		return b.Spent(budget.Steps)
	}
	one := query.SummaryRequest{Kind: "Widget", By: []string{"spec.title"}}
	two := query.SummaryRequest{Kind: "Widget", By: []string{"spec.title", "spec.heavy"}}
	for i := range 20 {
		f.CreateWidget(fmt.Sprint("w", i), fmt.Sprintf(`{"title":"t%d"}`, i%4))
	}
	few, both := spent(one), spent(two)
	for i := range 200 {
		f.CreateWidget(fmt.Sprint("x", i), fmt.Sprintf(`{"title":"t%d"}`, i%4))
	}
	if many := spent(one); many != few {
		t.Errorf("%d steps for 220 resources, %d for 20", many, few)
	}
	if many := spent(two); many < both+200*budget.Looked {
		t.Errorf("two keys look at each resource: %d steps for 220, %d for 20", many, both)
	}
}

func TestSummary_TheGroupsOfASummaryAreHeldUntilTheAnswerIsWritten(t *testing.T) {
	for name, by := range map[string][]string{"one key": {"labels.n"}, "two keys": {"labels.n", "spec.title"}} {
		t.Run(name, func(t *testing.T) {
			f := setupIndexed(t)
			value := strings.Repeat("v", 60)
			for i := range 20 {
				if _, err := f.Writer.Upsert(context.Background(), service.UpsertRequest{
					Identity: kind.Identity{Kind: "Widget", Name: fmt.Sprint("w", i)}, Spec: servicetest.Raw(`{"title":"t"}`),
					Metadata: service.Metadata{Labels: service.Optional[[]service.Label]{Set: true, Value: []service.Label{{Key: "n", Value: fmt.Sprint(value, i)}}}},
				}); err != nil {
					t.Fatal(err)
				}
			}
			b := budget.New(budget.Limits{budget.Held: 10_000})
			ctx, req := budget.With(t.Context(), b), query.SummaryRequest{Kind: "Widget", By: by}
			if _, err := f.Reader.Summary(ctx, req); err != nil || b.Spent(budget.Held) < 20*2*60 {
				t.Errorf("%d bytes are held: %v", b.Spent(budget.Held), err)
			}
			if _, err := f.Reader.Summary(ctx, req); !errors.As(err, new(*budget.ExceededError)) {
				t.Errorf("a second one is held, too: %v", err)
			}
		})
	}
}

func TestSummary_WhatCannotBeSummarisedIsRefused(t *testing.T) {
	f := setup(t)
	many := make([]string, query.MaxKeys)
	for i := range many {
		many[i] = "spec.title"
	}
	for name, c := range map[string]struct {
		req  query.SummaryRequest
		code failure.Code
		path string
	}{
		"an unknown kind":       {query.SummaryRequest{Kind: "Nobody"}, failure.CodeBadUserInput, "kind"},
		"no filterable field":   {query.SummaryRequest{By: []string{"spec.notes"}}, failure.CodeBadUserInput, "by[0]"},
		"a list":                {query.SummaryRequest{By: []string{"spec.title", "spec.tags"}}, failure.CodeBadUserInput, "by[1]"},
		"no key of a label":     {query.SummaryRequest{By: []string{"labels."}}, failure.CodeBadUserInput, "by[0]"},
		"too many keys":         {query.SummaryRequest{By: append(many, "namespace")}, failure.CodeLimitExceeded, "by"},
		"no conditions":         {query.SummaryRequest{Conditions: []string{"Available"}}, failure.CodeBadUserInput, "conditions[0]"},
		"a bad filter":          {query.SummaryRequest{Filter: map[string]any{"spec": map[string]any{"title": map[string]any{}}}}, failure.CodeBadUserInput, "filter.spec.title"},
		"namespace of a GLOBAL": {query.SummaryRequest{Kind: "Cluster", By: []string{"namespace"}}, failure.CodeBadUserInput, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if c.req.Kind == "" {
				c.req.Kind = "Widget"
			}
			_, err := f.Reader.Summary(t.Context(), c.req)
			if e := servicetest.WantCode(t, err, c.code); e != nil && c.path != "" && e.Path != c.path {
				t.Errorf("path %q, want %q", e.Path, c.path)
			}
		})
	}
}

func TestSummary_ASummaryHasAtMostAThousandGroups(t *testing.T) {
	for name, by := range map[string][]string{"one key": {"labels.n"}, "two keys": {"labels.n", "spec.title"}} {
		t.Run(name, func(t *testing.T) {
			f := setupIndexed(t)
			add := func(i int) {
				if _, err := f.Writer.Upsert(context.Background(), service.UpsertRequest{
					Identity: kind.Identity{Kind: "Widget", Name: fmt.Sprint("w", i)}, Spec: servicetest.Raw(`{"title":"t"}`),
					Metadata: service.Metadata{Labels: service.Optional[[]service.Label]{Set: true, Value: []service.Label{{Key: "n", Value: fmt.Sprint(i)}}}},
				}); err != nil {
					t.Fatal(err)
				}
			}
			for i := range 1000 {
				add(i)
			}
			if got, err := f.Reader.Summary(t.Context(), query.SummaryRequest{Kind: "Widget", By: by}); err != nil || len(got.Groups) != 1000 {
				t.Fatal(err)
			}
			add(1000)
			_, err := f.Reader.Summary(t.Context(), query.SummaryRequest{Kind: "Widget", By: by})
			servicetest.WantCode(t, err, failure.CodeLimitExceeded)
		})
	}
}
