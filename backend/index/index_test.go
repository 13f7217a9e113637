package index_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"weak"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/hub"
	"github.com/sluicegw/sluice/backend/index"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/internal/heaptest"
)

func TestIndex_AViewShowsEverythingThatWasAcknowledged(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(*testing.T) store) {
		f := start(t, open(t), index.Config{Wait: time.Minute})
		var wg sync.WaitGroup
		for w := range 8 {
			wg.Go(func() {
				rnd := rand.New(rand.NewPCG(uint64(w), 1))
				for i := range 200 {
					k := key(fmt.Sprint("n", w, "-", rnd.IntN(5)))
					stored := f.put(k, fmt.Sprint("v", i), colour(fmt.Sprint("c", rnd.IntN(3))))
					v, ok := f.View(t.Context())
					if !ok {
						t.Error("no view in time")
						return
					}
					at, _ := v.Kind("Thing")
					if e := at.Get(k.Namespace, k.Name); e == nil || e.Resource.Revision.Compare(stored.Revision) < 0 {
						t.Errorf("%s was stored at %s and the view shows %+v", k, stored.Revision, e)
						return
					}
				}
			})
		}
		wg.Wait()
	})
}

// stored are the resources of a kind that the store has.
func (f *fixture) stored(kind string) (out []*backend.Resource) {
	f.Helper()
	r := backend.Range{Kind: kind, Limit: backend.MaxLimit}
	for more := true; more; {
		page, err := f.store.Range(context.Background(), r)
		if err != nil {
			f.Fatal(err)
		}
		if more, out = page.More, append(out, page.Resources...); more {
			last := out[len(out)-1]
			r.Start = backend.Successor(backend.OrderTuple(last.Namespace, last.Name))
		}
	}
	return out
}

// content is what a kind has in the store, as [index.Kind.Content] tells it.
func (f *fixture) content(kind, of string) (out []string) {
	f.Helper()
	for _, r := range f.stored(kind) {
		text := strings.Join([]string{r.Namespace, r.Name, r.Revision.String(), string(r.Body)}, "|")
		switch of {
		case "":
			out = append(out, "|"+text)
		case index.UpdatedIndex:
			out = append(out, string(backend.AppendInt(nil, r.UpdatedAt.UnixNano()))+"|"+text)
		case index.CreationIndex("colour"):
			for range rowsOf(r) {
				out = append(out, string(backend.AppendInt(nil, r.CreatedAt.UnixNano()))+"|"+text)
			}
		case index.NullIndex("colour"):
			if len(rowsOf(r)) == 0 && string(r.Body) != "jbad" {
				out = append(out, "|"+text)
			}
		default:
			for _, row := range rowsOf(r) {
				if row.Index == of {
					out = append(out, string(row.Value)+"|"+text)
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

func TestIndex_TheTreesAreThoseOfAPlainSort(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(*testing.T) store) {
		s := open(t)
		before := &fixture{TB: t, store: s}
		rnd := rand.New(rand.NewPCG(7, 7))
		change := func() {
			k := key(fmt.Sprint("n", rnd.IntN(40)))
			var rows []index.Row
			for range rnd.IntN(3) {
				rows = append(rows, colour(fmt.Sprint("c", rnd.IntN(4))))
			}
			switch rnd.IntN(6) {
			case 0:
				_, _ = before.apply(backend.Action{Key: k, Op: backend.OpDelete}) // it may not be there
			default:
				before.put(k, fmt.Sprint("v", rnd.IntN(100)), slices.CompactFunc(rows, equalRows)...)
			}
		}
		for range 100 {
			change()
		}
		var writes sync.WaitGroup
		writes.Go(func() { // while the index is filled
			for range 100 {
				change()
			}
		})
		f := start(t, s, index.Config{Wait: time.Minute})
		writes.Wait()
		for range 20 {
			for range 10 {
				change()
			}
			_, k := f.view("Thing")
			for _, of := range []string{"", "colour", index.NullIndex("colour"), index.CreationIndex("colour"), index.UpdatedIndex} {
				got := k.Content(of)
				slices.Sort(got)
				if want := f.content("Thing", of); !slices.Equal(got, want) {
					t.Fatalf("tree %q has\n%q\nwant\n%q", of, got, want)
				}
			}
		}
	})
}

func TestIndex_AViewNeverChanges(t *testing.T) {
	f := start(t, openMemory(t), index.Config{Wait: time.Minute})
	for _, name := range []string{"a", "b", "c"} {
		f.put(key(name), "old", colour("red"))
	}
	_, k := f.view("Thing")
	was := [][]string{k.Content(""), k.Content("colour"), k.Content(index.UpdatedIndex)}
	f.put(key("a"), "new", colour("blue"))
	f.put(key("b"), "new", colour("red"))
	f.remove(key("c"))
	f.put(key("c"), "again", colour("red"))
	_, next := f.view("Thing")
	if got := names(next, index.Run{Index: "colour"}, false); got != "a b c" {
		t.Errorf("the next view has %s", got)
	}
	for i, of := range []string{"", "colour", index.UpdatedIndex} {
		if got := k.Content(of); !slices.Equal(got, was[i]) {
			t.Errorf("tree %q has become %q, it was %q", of, got, was[i])
		}
	}
}

func TestIndex_RunsAreReadAndMeasured(t *testing.T) {
	f := start(t, openMemory(t), index.Config{Wait: time.Minute})
	for i := range 500 {
		f.put(key(fmt.Sprintf("n%03d", i)), "x", colour(fmt.Sprint("c", i%5)))
	}
	f.put(key("bad"), "bad", colour("c1"))
	_, k := f.view("Thing")
	value := backend.AppendString(nil, "c1")
	c1 := index.Run{Index: "colour", Start: value, End: backend.PrefixEnd(value)}
	if n := k.Len(c1); n != 100 {
		t.Errorf("%d rows of one value, want 100", n)
	}
	behind := append(slices.Clone(value), backend.OrderTuple("ns", "n400")...)
	last := index.Run{Index: "colour", Start: behind, End: c1.End}
	if got := names(k, last, true); !strings.HasPrefix(got, "n496 n491") || k.Len(last) != 20 {
		t.Errorf("behind n400 are %d: %s", k.Len(last), got)
	}
	all := index.Run{}
	if k.Len(all) != 501 || k.Unreadable(all) != 1 {
		t.Errorf("%d names, %d of them unreadable", k.Len(all), k.Unreadable(all))
	}
	from := index.Run{Start: backend.OrderTuple("ns", "n100"), End: backend.OrderTuple("ns", "n300")}
	if k.Len(from) != 200 || k.Unreadable(from) != 0 {
		t.Errorf("%d names from n100 to n300", k.Len(from))
	}
	if e := k.Get("ns", "bad"); e == nil || !errors.Is(e.Err, backend.ErrUnreadable) {
		t.Errorf("the unreadable one is %+v", e)
	}
	if k.Has("size") || k.Len(index.Run{Index: "size"}) != 0 {
		t.Error("there is an index that nobody declared")
	}
}

func TestIndex_WhatExpiresIsToldApartByTheStoresClock(t *testing.T) {
	now := atomic.Int64{}
	now.Store(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli())
	s, err := memory.Open(memory.Config{Clock: func() time.Time { return time.UnixMilli(now.Load()) }})
	f := start(t, opened(t, s, err), index.Config{Wait: time.Minute})
	for i, name := range []string{"a", "b", "c"} {
		_, err := f.apply(backend.Action{Key: key(name), Op: backend.OpPut, Put: backend.Put{
			UID: "u", Body: backend.EncodeBody([]byte("x")), ExpiresAt: s.Now().Add(time.Duration(i+1) * time.Second),
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	now.Add(2000)
	v, k := f.view("Thing")
	var gone []string
	for e := range k.Expired(v.Now()) {
		gone = append(gone, e.Resource.Name)
	}
	if strings.Join(gone, " ") != "a b" {
		t.Errorf("expired are %q", gone)
	}
}

func TestIndex_AKindThatDoesNotFitIsNotServed(t *testing.T) {
	s := openMemory(t)
	f := &fixture{TB: t, store: s}
	for i := range 100 {
		f.put(key(fmt.Sprint("n", i)), strings.Repeat("x", 1000))
	}
	f.put(backend.Key{Kind: "Other", Namespace: "ns", Name: "small"}, "x")
	f = start(t, s, index.Config{Wait: time.Minute, Bytes: 100_000})
	if stats := f.Stats(); stats.Served != 1 || stats.Bytes > stats.Limit {
		t.Fatalf("%+v", stats)
	}
	v, ok := f.View(t.Context())
	if _, served := v.Kind("Thing"); !ok || served {
		t.Error("the large kind is served")
	}
	f.view("Other")
	for i := range 200 { // the one that is served grows out of it, too
		f.put(backend.Key{Kind: "Other", Namespace: "ns", Name: fmt.Sprint("n", i)}, strings.Repeat("x", 1000))
	}
	if _, ok := f.View(t.Context()); ok {
		t.Errorf("something is served: %+v", f.Stats())
	}
	if stats := f.Stats(); stats.Bytes > stats.Limit/16 || stats.Fallbacks == 0 { // but for the keys of changes
		t.Errorf("%+v", stats)
	}
}

func TestIndex_AKindIsServedOnceItFitsAgain(t *testing.T) {
	s := openMemory(t)
	f := &fixture{TB: t, store: s}
	for i := range 100 {
		f.put(key(fmt.Sprint("n", i)), strings.Repeat("x", 1000))
	}
	f = start(t, s, index.Config{Wait: time.Minute, Bytes: 100_000, Retry: time.Millisecond})
	for i := range 99 {
		f.remove(key(fmt.Sprint("n", i)))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for f.Stats().Served < 2 && ctx.Err() == nil {
		f.filled()
	}
	f.view("Thing")
}

func TestIndex_WhatTheHubLosesIsFilledAgain(t *testing.T) {
	f := start(t, openMemory(t), index.Config{})
	f.put(key("a"), "x", colour("red"))
	_, k := f.view("Thing")
	was := k.Content("colour")
	head, err := backend.HeadOf(t.Context(), f.store)
	if err != nil {
		t.Fatal(err)
	}
	f.Begin(head) // as the hub says where it could not go on
	f.filled()
	_, k = f.view("Thing")
	if got := k.Content("colour"); !slices.Equal(got, was) {
		t.Errorf("it has %q, want %q", got, was)
	}
	f.Begin(backend.Position{})
	if _, ok := f.View(t.Context()); ok {
		t.Error("an index without a hub that follows serves")
	}
}

// observedStore is a store that calls onHead when its head is read.
type observedStore struct {
	*memory.Store
	onHead func()
}

func (a *observedStore) Head(ctx context.Context) (backend.Position, error) {
	a.onHead()
	return a.Store.Position(ctx)
}

func TestIndex_WhatIsWrittenBetweenTheLastPageAndTheHeadIsNotLost(t *testing.T) {
	inner := openMemory(t).(*memory.Store)
	f := &fixture{TB: t, store: inner}
	f.put(key("removed"), "x")
	var once sync.Once
	s := &observedStore{Store: inner}
	written := make(chan *fixture, 1)
	s.onHead = func() {
		once.Do(func() { // by the fill of the first kind, after its pages
			f.remove(key("removed"))
			f.put(key("made"), "x")
			head, err := inner.Position(t.Context())
			if err != nil {
				t.Error(err)
			}
			for g := <-written; !g.hub.Position().Equal(head); { // until it was delivered
				runtime.Gosched()
			}
		})
	}
	g := &fixture{TB: t, store: s}
	var err error
	if g.hub, err = hub.New(hub.Config{Store: s}); err != nil {
		t.Fatal(err)
	}
	written <- g
	if g.Index, err = index.New(index.Config{Store: s, Hub: g.hub, Kinds: []index.Definition{thing("Thing")}}); err != nil {
		t.Fatal(err)
	}
	g.run(g.hub.Run)
	g.run(g.Run)
	g.filled()
	if _, k := g.view("Thing"); names(k, index.Run{}, false) != "made" {
		t.Errorf("it shows %q", names(k, index.Run{}, false))
	}
}

// held is a store whose deliveries a test holds back.
type held struct {
	*memory.Store
	sync.Mutex
}

func (h *held) Watch(ctx context.Context, w backend.Watch) (backend.Watcher, error) {
	inner, err := h.Store.Watch(ctx, w)
	return &heldWatcher{inner, h}, err
}

type heldWatcher struct {
	backend.Watcher
	by *held
}

func (w *heldWatcher) Next(ctx context.Context) (backend.Delivery, error) {
	d, err := w.Watcher.Next(ctx)
	w.by.Lock()
	defer w.by.Unlock()
	return d, err
}

func TestIndex_NobodyWaitsTwiceForAnIndexThatIsStuck(t *testing.T) {
	inner, err := memory.Open(memory.Config{})
	s := &held{Store: inner}
	opened(t, s, err)
	f := start(t, s, index.Config{Wait: 10 * time.Millisecond})
	f.view("Thing")
	s.Lock()
	f.put(key("a"), "x")
	begin := f.Stats()
	for range 3 {
		if _, ok := f.View(t.Context()); ok {
			t.Fatal("a view is older than what was acknowledged")
		}
	}
	if stats := f.Stats(); stats.Fallbacks != begin.Fallbacks+3 || stats.Waits != begin.Waits+1 {
		t.Errorf("%+v, before %+v", stats, begin)
	}
	s.Unlock()
	f.put(key("b"), "x")
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for ctx.Err() == nil {
		if v, ok := f.View(ctx); ok {
			if k, _ := v.Kind("Thing"); k.Get("ns", "a") == nil || k.Get("ns", "b") == nil {
				t.Error("what was held back is missing")
			}
			return
		}
	}
	t.Errorf("not served again: %+v", f.Stats())
}

func TestIndex_AStateForWhichAReadWaitedInVainIsNotKept(t *testing.T) {
	inner, err := memory.Open(memory.Config{})
	s := &held{Store: inner}
	opened(t, s, err)
	f := start(t, s, index.Config{Wait: 10 * time.Millisecond})
	f.put(key("a"), "x")
	old := func() weak.Pointer[index.Entry] {
		for {
			if v, ok := f.View(t.Context()); ok {
				k, _ := v.Kind("Thing")
				return weak.Make(k.Get("ns", "a"))
			}
		}
	}()
	s.Lock()
	f.put(key("b"), "x")
	if _, ok := f.View(t.Context()); ok {
		t.Fatal("a view is older than what was acknowledged")
	}
	s.Unlock()
	f.remove(key("a"))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		if v, ok := f.View(ctx); ok {
			if k, _ := v.Kind("Thing"); k.Get("ns", "a") == nil {
				break
			}
		}
		if ctx.Err() != nil {
			t.Fatalf("not served again: %+v", f.Stats())
		}
	}
	for range 3 {
		runtime.GC()
	}
	if old.Value() != nil {
		t.Error("a resource is still in memory that was removed")
	}
}

func FuzzOrderOfItems(f *testing.F) {
	f.Add("a", "bc", "ab", "c")
	f.Add("", "x", "x", "")
	f.Fuzz(func(t *testing.T, value, place, other, otherPlace string) {
		if got, want := index.CompareItems(value, place, other, otherPlace), strings.Compare(value+place, other+otherPlace); got != want {
			t.Errorf("%q %q against %q %q: %d, want %d", value, place, other, otherPlace, got, want)
		}
	})
}

func TestIndex_RowsArePackedWhateverTheirNumbersAndLengths(t *testing.T) {
	var indexes []int
	var values []string
	for _, index := range []int{0, 1, 127, 128, 16_383, 16_384} {
		for _, length := range []int{0, 1, 127, 128, 16_384, 70_000} {
			indexes, values = append(indexes, index), append(values, strings.Repeat("\x80", length))
		}
	}
	gotIndexes, gotValues := index.Packed(indexes, values)
	if !slices.Equal(gotIndexes, indexes) || !slices.Equal(gotValues, values) {
		t.Errorf("rows that were packed differ: %v", gotIndexes)
	}
	if none, _ := index.Packed(nil, nil); none != nil {
		t.Errorf("no rows are %v", none)
	}
}

// A row that stays in a tree must not keep all rows of the entry that brought it.
func TestIndex_RowsThatChangeOneAtATimeKeepNoOthersInMemory(t *testing.T) {
	const count, length, changes = 300, 200, 2000
	kind := thing("Thing")
	s := index.NewKindIndex(&kind)
	value := func(i int) index.Row { return colour(fmt.Sprintf("%0*d", length, i)) }
	r := &backend.Resource{Key: key("a")}
	var rows []index.Row
	for i := range count {
		rows = append(rows, value(i))
	}
	before := heaptest.InUse()
	for i := range changes {
		rows[i%count] = value(count + i)
		r.Body = bodyOf("x", rows...)
		r.Revision.Seq++
		s.Put(r)
	}
	if grown, most := heaptest.InUse()-before, int64(20*count*length); grown > most {
		t.Errorf("after %d changes of one of %d rows they take %d bytes, want at most %d", changes, count, grown, most)
	}
	s.Remove(r.Key, backend.Revision{Seq: r.Revision.Seq + 1})
	if grown, most := heaptest.InUse()-before, int64(10*count*length); grown > most {
		t.Errorf("what is gone takes %d bytes, want at most %d", grown, most)
	}
	runtime.KeepAlive(s)
}
