package index_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/index"
	"github.com/sluicegw/sluice/backend/memory"
)

// Of one value the resources come in the order of their creation, and of those that were
// created at the same time in that of their names.
func TestKind_TheRowsOfAValueAreReadInTheOrderOfCreation(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s, err := memory.Open(memory.Config{Clock: func() time.Time { return now }})
	f := start(t, opened(t, s, err), index.Config{Wait: time.Minute})
	rnd := rand.New(rand.NewPCG(11, 3))
	stored := map[string]*backend.Resource{}
	for range 600 {
		name := fmt.Sprintf("n%02d", rnd.IntN(60))
		if rnd.IntN(4) == 0 {
			now = now.Add(time.Millisecond)
		}
		switch rnd.IntN(5) {
		case 0:
			if stored[name] != nil {
				f.remove(key(name))
				delete(stored, name)
			}
		default:
			stored[name] = f.put(key(name), "x", colour(fmt.Sprint("c", rnd.IntN(2))))
		}
	}
	_, k := f.view("Thing")
	for _, c := range []string{"c0", "c1", "none"} {
		var all []*backend.Resource
		for _, r := range stored {
			if equalRows(rowsOf(r)[0], colour(c)) {
				all = append(all, r)
			}
		}
		slices.SortFunc(all, func(a, b *backend.Resource) int {
			return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), strings.Compare(a.Name, b.Name))
		})
		var place [][]byte
		for _, r := range all {
			place = append(place, append(backend.AppendInt(slices.Clone(colour(c).Value), r.CreatedAt.UnixNano()), backend.OrderTuple(r.Namespace, r.Name)...))
		}
		whole := index.Run{Index: index.CreationIndex("colour"), Start: colour(c).Value, End: backend.PrefixEnd(colour(c).Value)}
		for range 100 {
			run, from, to := whole, 0, len(all)
			if len(all) > 0 && rnd.IntN(2) == 0 {
				from = rnd.IntN(len(all))
				run.Start = place[from]
			}
			if len(all) > 0 && rnd.IntN(2) == 0 {
				to = max(from, rnd.IntN(len(all)))
				run.End = place[to]
			}
			var want []string
			for _, r := range all[from:to] {
				want = append(want, r.Name)
			}
			reverse := rnd.IntN(2) == 0
			if reverse {
				slices.Reverse(want)
			}
			if got := names(k, run, reverse); got != strings.Join(want, " ") || k.Len(run) != len(want) {
				t.Fatalf("%s from %d to %d, reverse %v: %d rows\n%s\nwant\n%s", c, from, to, reverse, k.Len(run), got, want)
			}
		}
	}
}

// A store may replace what has expired without telling of its end.
func TestKind_AResourceThatTakesAnothersPlaceHasItsOwnRows(t *testing.T) {
	kind := thing("Thing")
	s := index.NewKindIndex(&kind)
	first, second := time.Unix(2000, 0), time.Unix(1000, 0)
	r := backend.Resource{Key: key("a"), Body: bodyOf("x", colour("red"))}
	r.CreatedAt, r.Revision.Seq = first, 1
	s.Put(&r)
	before := s.Kind()
	again := r
	again.CreatedAt, again.Revision.Seq, again.Body = second, 2, bodyOf("x", colour("red"), colour("blue"))
	s.Put(&again)
	after := s.Kind()
	for _, c := range []struct {
		k    *index.Kind
		c    string
		at   time.Time
		want string
	}{
		{before, "red", first, "a"}, {before, "red", second, ""}, {before, "blue", second, ""},
		{after, "red", first, ""}, {after, "red", second, "a"}, {after, "blue", second, "a"},
	} {
		at := backend.AppendInt(slices.Clone(colour(c.c).Value), c.at.UnixNano())
		if got := names(c.k, index.Run{Index: index.CreationIndex("colour"), Start: at, End: backend.PrefixEnd(at)}, false); got != c.want {
			t.Errorf("created at %v with %s: %q, want %q", c.at, c.c, got, c.want)
		}
	}
}
