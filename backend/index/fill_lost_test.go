package index_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/hub"
	"github.com/sluicegw/sluice/backend/index"
	"github.com/sluicegw/sluice/backend/memory"
)

// failing is a store with a primary, in whose place a replica can be put.
type failing struct {
	primary atomic.Pointer[memory.Store]
	// pages counts the pages of whole resources, keys what was got by key.
	pages, keys atomic.Int32
}

func (s *failing) Apply(ctx context.Context, b backend.Batch) (backend.Result, error) {
	return s.primary.Load().Apply(ctx, b)
}

func (s *failing) Get(ctx context.Context, keys ...backend.Key) ([]*backend.Resource, error) {
	s.keys.Add(int32(len(keys)))
	return s.primary.Load().Get(ctx, keys...)
}

func (s *failing) Range(ctx context.Context, r backend.Range) (backend.Page, error) {
	if !r.KeysOnly && !r.Count {
		s.pages.Add(1)
	}
	return s.primary.Load().Range(ctx, r)
}

func (s *failing) Ranges(ctx context.Context, rs []backend.Range) ([]backend.Page, error) {
	return s.primary.Load().Ranges(ctx, rs)
}

func (s *failing) Position(ctx context.Context) (backend.Position, error) {
	return s.primary.Load().Position(ctx)
}

func (s *failing) Watch(ctx context.Context, w backend.Watch) (backend.Watcher, error) {
	out, err := s.primary.Load().Watch(ctx, w)
	return away{out}, err
}

func (s *failing) Now() time.Time { return s.primary.Load().Now() }

func (s *failing) Purge(ctx context.Context) (int, error) { return s.primary.Load().Purge(ctx) }

func (s *failing) Close() error { return s.primary.Load().Close() }

// away is a watch of a primary that may be gone.
type away struct{ backend.Watcher }

func (a away) Next(ctx context.Context) (backend.Delivery, error) {
	d, err := a.Watcher.Next(ctx)
	if errors.Is(err, backend.ErrClosed) {
		err = backend.ErrUnavailable
	}
	return d, err
}

// After a fail-over the index reads what the new primary has not, and nothing else: by the keys
// of what was lost, if the log knows where the histories part, and else by what differs.
func TestFill_WhatAFailOverLosesIsReadAgain(t *testing.T) {
	for _, known := range []bool{true, false} {
		for seed := range uint64(20) {
			t.Run(fmt.Sprintf("known %v seed %d", known, seed), func(t *testing.T) { loseSome(t, seed, known) })
		}
	}
}

func loseSome(t *testing.T, seed uint64, known bool) {
	rnd := rand.New(rand.NewPCG(seed, 3))
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	open := func(data *memory.Data, entries int) *memory.Store { // two of one seed have one history
		s, err := memory.Open(memory.Config{Data: data, Clock: func() time.Time { return now }, Rand: rand.New(rand.NewPCG(seed, 4)), LogEntries: entries})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	copied := &memory.Data{}
	primary, replica := open(&memory.Data{}, 0), open(copied, 0)
	changes := 0
	change := func(stores ...*memory.Store) {
		changes++
		a := backend.Action{Key: key(fmt.Sprint("n", rnd.IntN(30))), Op: backend.OpDelete}
		if rnd.IntN(4) > 0 {
			a.Op, a.Put = backend.OpPut, backend.Put{UID: "u", Body: bodyOf(fmt.Sprint("v", changes), colour(fmt.Sprint("c", rnd.IntN(3))))}
		}
		for _, s := range stores {
			_, err := s.Apply(t.Context(), backend.Batch{RequestID: fmt.Sprint("r", changes), Deadline: now.Add(time.Minute), Actions: []backend.Action{a}})
			if err != nil && !errors.Is(err, backend.ErrNotFound) {
				t.Fatal(err)
			}
		}
	}
	for i := range 1500 { // more than a page, and they stay
		changes++
		for _, s := range []*memory.Store{primary, replica} {
			a := backend.Action{Key: key(fmt.Sprint("m", i)), Op: backend.OpPut, Put: backend.Put{UID: "u", Body: bodyOf("m", colour("m"))}}
			if _, err := s.Apply(t.Context(), backend.Batch{RequestID: fmt.Sprint("r", changes), Deadline: now.Add(time.Minute), Actions: []backend.Action{a}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 100 {
		change(primary, replica)
	}
	s := &failing{}
	s.primary.Store(primary)
	f := start(t, s, index.Config{Wait: time.Minute})
	for range 1 + rnd.IntN(40) {
		change(primary) // and the replica never has it
	}
	f.view("Thing")
	_ = replica.Close()
	entries := 0
	if !known {
		entries = 1 // the new primary has forgotten the epoch before
	}
	replica = open(copied, entries)
	for range 3 + rnd.IntN(10) {
		change(replica)
	}
	for !known { // what trims the log forgets an epoch after some changes
		if w, err := replica.Watch(t.Context(), backend.Watch{From: f.hub.Position()}); err != nil {
			var expired *backend.ExpiredError
			if !errors.As(err, &expired) || len(expired.Shared) == 0 || expired.Shared[0].IsZero() {
				break
			}
		} else {
			w.Close()
		}
		change(replica)
	}
	s.pages.Store(0)
	s.keys.Store(0)
	s.primary.Store(replica)
	_ = primary.Close()
	for range rnd.IntN(10) {
		change(replica)
	}
	v, ok, err := f.Await(t.Context(), index.View{}, "Thing")
	if err != nil || !ok {
		t.Fatalf("%v %v", ok, err)
	}
	if n := s.pages.Load(); n > 0 {
		t.Errorf("%d pages of whole resources were read", n)
	}
	if n := s.keys.Load(); n > 31 {
		t.Errorf("%d resources were read by their keys, where 30 may differ", n)
	}
	k, _ := v.Kind("Thing")
	for _, of := range []string{"", "colour", index.UpdatedIndex, index.NullIndex("colour")} {
		if got, want := slices.Sorted(slices.Values(k.Content(of))), f.content("Thing", of); !slices.Equal(got, want) {
			t.Fatalf("the tree %q has %d rows, and the store %d\n%s", of, len(got), len(want), cmp.Diff(want, got))
		}
	}
	_ = s.Close()
}

// gated is a store whose hub's own watch stands still while the gate is set.
type gated struct {
	*failing
	gate *chan struct{}
}

func (g gated) Watch(ctx context.Context, w backend.Watch) (backend.Watcher, error) {
	out, err := g.failing.Watch(ctx, w)
	if *g.gate != nil && w.MaxLag > backend.DefaultMaxLag && err == nil {
		return waiting{out, *g.gate}, nil
	}
	return out, err
}

type waiting struct {
	backend.Watcher
	gate chan struct{}
}

func (w waiting) Next(ctx context.Context) (backend.Delivery, error) {
	<-w.gate
	return w.Watcher.Next(ctx)
}

// failOver runs a hub over a primary of which a replica has all but the last changes, writes
// as many to the replica, and puts it in the place of the primary, which stays open. At is
// where the histories part.
func failOver(t *testing.T, writes int) (h *hub.Hub, primary, replica *memory.Store, at backend.Position, gate *chan struct{}) {
	t.Helper()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	open := func(data *memory.Data) *memory.Store {
		s, err := memory.Open(memory.Config{Data: data, Clock: func() time.Time { return now }, Rand: rand.New(rand.NewPCG(1, 4))})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	write := func(s *memory.Store, name string) {
		a := backend.Action{Key: key(name), Op: backend.OpPut, Put: backend.Put{UID: "u", Body: bodyOf("v", colour("c"))}}
		if _, err := s.Apply(t.Context(), backend.Batch{RequestID: name, Deadline: now.Add(time.Minute), Actions: []backend.Action{a}}); err != nil {
			t.Fatal(err)
		}
	}
	copied := &memory.Data{}
	primary, replica = open(&memory.Data{}), open(copied)
	for i := range 5 {
		write(primary, fmt.Sprint("both", i))
		write(replica, fmt.Sprint("both", i))
	}
	s := gated{&failing{}, new(chan struct{})}
	s.failing.primary.Store(primary)
	h, err := hub.New(hub.Config{Store: s})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var ran sync.WaitGroup
	ran.Go(func() { _ = h.Run(ctx) })
	t.Cleanup(func() { stop(); ran.Wait() })
	synctest.Wait()
	for i := range 3 {
		write(primary, fmt.Sprint("lost", i))
	}
	synctest.Wait()
	_ = replica.Close()
	replica = open(copied)
	if at, err = replica.Position(ctx); err != nil {
		t.Fatal(err)
	}
	for i := range writes {
		write(replica, fmt.Sprint("new", i))
	}
	s.failing.primary.Store(replica)
	return h, primary, replica, at, s.gate
}

func TestFill_AWatchThatBeganAfterAFailOverGoesOnWhenTheHubHearsOfIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, primary, _, _, _ := failOver(t, 2)
		w, err := h.Watch(t.Context(), hub.Watch{})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		if _, err = w.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
		_ = primary.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // of the bubble
		defer cancel()
		if _, err = w.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it ended with %v", err)
		}
	})
}

func TestFill_AWatchThatReadsDuringAFailOverIsInSyncOnceItHasSeenAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, primary, replica, at, gate := failOver(t, 1000)
		head, err := replica.Position(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		w, err := h.Watch(t.Context(), hub.Watch{From: at})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		d, err := w.Next(t.Context())
		if err != nil || d.CaughtUp {
			t.Fatalf("%v %v", d.CaughtUp, err)
		}
		*gate = make(chan struct{})
		_ = primary.Close()
		time.Sleep(10 * time.Second) // of the bubble: the hub begins again
		time.AfterFunc(time.Second, func() { close(*gate) })
		for !d.CaughtUp {
			if d, err = w.Next(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if d.Position.Shard(0).Compare(head.Shard(0)) < 0 {
			t.Errorf("in sync at %v, and the store was at %v when the watch began", d.Position, head)
		}
	})
}

// A fail-over may come while the index begins to read again what another one has lost: what it loses is added to that. The
// race detector tells if both are done at once.
func TestFill_MoreIsLostWhileWhatWasLostIsReadAgain(t *testing.T) {
	f := start(t, openMemory(t), index.Config{Wait: time.Minute})
	for round := range 200 {
		var at [2]backend.Position
		for i := range at {
			v, _ := f.view("Thing")
			at[i] = v.Position()
			f.put(key(fmt.Sprint("n", i)), fmt.Sprint(round))
		}
		f.view("Thing")
		f.Begin(at[1])
		for range round % 20 { // so that the index has begun, in some rounds
			runtime.Gosched()
		}
		f.Begin(at[0])
		f.put(key("last"), fmt.Sprint(round)) // and with it the hub goes on
		v, ok, err := f.Await(t.Context(), index.View{}, "Thing")
		k, served := v.Kind("Thing")
		if err != nil || !ok || !served {
			t.Fatalf("%v %v %v", ok, served, err)
		}
		if got := names(k, index.Run{}, false); got != "last n0 n1" {
			t.Fatalf("it has %s", got)
		}
	}
}
