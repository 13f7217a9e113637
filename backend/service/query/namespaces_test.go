package query_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/query"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

// namespaces walks all namespaces by pages, and returns each with its counts.
func (f *fixture) namespaces(size int) (out []string) {
	f.T.Helper()
	var after *string
	for {
		p, err := f.Reader.Namespaces(f.T.Context(), &size, after)
		if err != nil {
			f.T.Fatal(err)
		}
		for _, ns := range p.Namespaces {
			out = append(out, fmt.Sprint(ns.Name, ns.Counts))
		}
		if total, err := p.TotalCount(f.T.Context()); !p.More {
			if err != nil || total != len(out) {
				f.T.Fatalf("%d namespaces %v, totalCount %d", len(out), err, total)
			}
			return out
		}
		after = new(p.Cursor(len(p.Namespaces) - 1))
	}
}

func TestNamespaces_NamespacesAreThoseThatHaveResources(t *testing.T) {
	for name, setup := range map[string]func(*testing.T) *fixture{"from the store": setup, "from the index": setupIndexed} {
		t.Run(name, func(t *testing.T) {
			for round := range 10 {
				rnd := rand.New(rand.NewPCG(20261125, uint64(round)))
				f, counts := setup(t), map[string]int{}
				for i := range rnd.IntN(40) {
					it := item{ns: "ns" + strconv.Itoa(rnd.IntN(12)), name: "n" + strconv.Itoa(i), title: "t"}
					f.write(it)
					counts[it.ns]++
				}
				var want []string
				for ns, n := range counts {
					want = append(want, fmt.Sprint(ns, []query.KindCount{{Kind: "Widget", Count: n}}))
				}
				slices.Sort(want)
				got := f.namespaces(1 + rnd.IntN(5))
				slices.Sort(got) // ns1 and ns10 are in the order of the names, not of these texts
				if !slices.Equal(got, want) {
					t.Fatalf("round %d: %v, want %v", round, got, want)
				}
			}
		})
	}
}

func TestNamespaces_ANamespaceGoesWithItsLastResource(t *testing.T) {
	for name, indexed := range map[string]bool{"from the store": false, "from the index": true} {
		t.Run(name, func(t *testing.T) {
			var now atomic.Int64
			now.Store(1_700_000_000_000)
			f := setupOn(t, memory.Config{Rand: rand.New(rand.NewPCG(1, 2)), Clock: func() time.Time { return time.UnixMilli(now.Load()) }, PurgeInterval: time.Hour})
			for _, ns := range []string{"a", "b", "c", "d"} {
				f.write(item{ns: ns, name: "w", title: "t"})
			}
			key := func(ns string) backend.Key { return backend.Key{Kind: "Widget", Namespace: ns, Name: "w"} }
			f.Put(key("b"), backend.Put{UID: "u", Body: backend.EncodeBody([]byte(`{"spec":{"title":"t"}}`)), ExpiresAt: time.UnixMilli(now.Load() + 500)})
			f.Put(key("c"), backend.Put{UID: "u", Body: backend.EncodeBody([]byte(`{"spec":`))})
			now.Add(1000)
			if indexed {
				f.ServeIndexed()
			} else {
				f.MustList(query.ListRequest{Kind: "Widget"}) // the gateway learns what it cannot read
			}
			if got := f.namespaces(1); fmt.Sprint(got) != "[a[{Widget 1}] d[{Widget 1}]]" {
				t.Errorf("%v", got)
			}
		})
	}
}

func TestNamespaces_APageOfNamespacesIsHeldToItsLimits(t *testing.T) {
	f := setup(t)
	_, err := f.Reader.Namespaces(t.Context(), new(1001), nil)
	servicetest.WantCode(t, err, failure.CodeBadUserInput)
	_, err = f.Reader.Namespaces(t.Context(), nil, new("AAAA"))
	servicetest.WantCode(t, err, failure.CodeCursorInvalid)
	f.write(item{ns: "a", name: "w", title: "t"})
	p, err := f.Reader.Namespaces(t.Context(), new(0), nil)
	if err != nil || len(p.Namespaces) != 0 || !p.More || p.Before {
		t.Errorf("%+v %v", p, err)
	}
}

func TestNamespaces_TheNamespacesOfAPageAreHeldUntilTheAnswerIsWritten(t *testing.T) {
	f := setupIndexed(t)
	for i := range 20 {
		f.write(item{ns: fmt.Sprint("ns", i), name: "n", title: "t"})
	}
	b := budget.New(budget.Limits{budget.Held: 5000})
	ctx := budget.With(t.Context(), b)
	if _, err := f.Reader.Namespaces(ctx, nil, nil); err != nil || b.Spent(budget.Held) < 20*100 {
		t.Fatalf("%d bytes are held: %v", b.Spent(budget.Held), err)
	}
	if _, err := f.Reader.Namespaces(ctx, nil, nil); !errors.As(err, new(*budget.ExceededError)) {
		t.Errorf("a second page is held, too: %v", err)
	}
}
