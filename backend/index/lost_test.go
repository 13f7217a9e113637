package index_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/index"
	"github.com/sluicegw/sluice/backend/memory"
)

// failing is a store with a primary, in whose place a replica can be put.
type failing struct {
	primary atomic.Pointer[memory.Store]
	ranges  atomic.Int32
}

func (s *failing) Apply(ctx context.Context, b backend.Batch) (backend.Result, error) {
	return s.primary.Load().Apply(ctx, b)
}

func (s *failing) Get(ctx context.Context, keys ...backend.Key) ([]*backend.Resource, error) {
	return s.primary.Load().Get(ctx, keys...)
}

func (s *failing) Range(ctx context.Context, r backend.Range) (backend.Page, error) {
	s.ranges.Add(1)
	return s.primary.Load().Range(ctx, r)
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

// After a fail-over the index reads what the new primary has not, and nothing else.
func TestWhatAFailOverLosesIsReadAgain(t *testing.T) {
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		open := func(data *memory.Data) *memory.Store { // two of one seed have one history
			s, err := memory.Open(memory.Config{Data: data, Clock: func() time.Time { return now }, Rand: rand.New(rand.NewPCG(seed, 4))})
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		copied := &memory.Data{}
		primary, replica := open(&memory.Data{}), open(copied)
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
		replica = open(copied)
		for range rnd.IntN(10) {
			change(replica)
		}
		s.ranges.Store(0)
		s.primary.Store(replica)
		_ = primary.Close()
		for range rnd.IntN(10) {
			change(replica)
		}
		var k *index.Kind
		for served := false; !served; {
			v, ok, err := f.Await(t.Context(), "Thing")
			if err != nil || !ok {
				t.Fatalf("seed %d: %v %v", seed, ok, err)
			}
			k, served = v.Kind("Thing")
		}
		for _, of := range []string{"", "colour", index.UpdatedIndex, index.NullIndex("colour")} {
			if got, want := slices.Sorted(slices.Values(k.Content(of))), f.content("Thing", of); !slices.Equal(got, want) {
				t.Fatalf("seed %d: the tree %q has\n%q\nand the store\n%q", seed, of, got, want)
			}
		}
		if n := s.ranges.Load(); n > 4 { // of this test
			t.Errorf("seed %d: %d pages were read", seed, n)
		}
		_ = s.Close()
	}
}
