package hub_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/hub"
	"github.com/sluicegw/sluice/backend/memory"
)

// countedStore counts the watches that are open.
type countedStore struct {
	*sharded
	open atomic.Int64
}

type countedWatcher struct {
	backend.Watcher
	close func()
}

func (s *countedStore) Watch(ctx context.Context, w backend.Watch) (backend.Watcher, error) {
	out, err := s.sharded.Watch(ctx, w)
	if err != nil {
		return nil, err
	}
	s.open.Add(1)
	return &countedWatcher{out, sync.OnceFunc(func() { s.open.Add(-1) })}, nil
}

func (w *countedWatcher) Close() {
	w.close()
	w.Watcher.Close()
}

// earlyFixture is a hub that does not run yet.
func earlyFixture(t *testing.T) (*fixture, *countedStore) {
	store := &countedStore{sharded: newSharded(t, 3, memory.Config{LogEntries: 1000})}
	h, err := hub.New(hub.Config{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	return &fixture{T: t, Hub: h, store: store.sharded}, store
}

func TestWatcher_WatchesThatBeganBeforeTheHubFollowsJoinIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, store := earlyFixture(t)
		f.write(0, "before")
		from := f.store.position(t)
		f.write(1, "missed")
		const waitingInNext, behind = 20, 5
		var got [waitingInNext][]string
		var all []*hub.Watcher
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for i := range waitingInNext {
			w := f.live(hub.Watch{})
			all = append(all, w)
			wg.Go(func() {
				for {
					d, err := w.Next(ctx)
					if err != nil {
						return
					}
					if d.CaughtUp {
						f.Error("a second mark")
					}
					for _, e := range d.Events {
						got[i] = append(got[i], e.Resource.Name)
					}
				}
			})
		}
		for range behind {
			all = append(all, f.watch(hub.Watch{From: from}))
		}
		gone := f.live(hub.Watch{})
		gone.Close()
		f.write(2, "early")
		synctest.Wait()
		f.run()
		synctest.Wait()
		if n := store.open.Load(); n > 1+behind {
			t.Errorf("%d watches of the store are open, want the hub's and those that were not read", n)
		}
		f.write(0, "a")
		f.write(1, "b")
		synctest.Wait()
		for _, w := range all[waitingInNext:] {
			names, marks := f.all(w, 4)
			slices.Sort(names) // shards have no order among each other
			f.want(names, "a b early missed")
			if marks == 0 && !f.next(w).CaughtUp {
				f.Error("no mark")
			}
		}
		f.write(2, "c")
		for _, w := range all[waitingInNext:] {
			names, _ := f.all(w, 1)
			f.want(names, "c")
		}
		synctest.Wait()
		if n := store.open.Load(); n != 1 {
			t.Errorf("%d watches of the store are open, want the hub's alone", n)
		}
		cancel()
		wg.Wait()
		for i := range got {
			slices.Sort(got[i])
			f.want(got[i], "a b c early")
		}
		for _, w := range all {
			if !w.Position().Equal(f.Position()) {
				f.Errorf("a watch is at %s, the hub at %s", w.Position(), f.Position())
			}
			w.Close()
		}
		f.stop()
	})
}

func TestWatcher_AWatchThatNeverJoinedEndsWithTheHub(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := earlyFixture(t)
		w := f.live(hub.Watch{})
		defer w.Close()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := f.Hub.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Next(t.Context()); !errors.Is(err, backend.ErrClosed) {
			t.Errorf("error %v", err)
		}
	})
}

// laggingStore makes each watch of it lag at once.
type laggingStore struct{ *sharded }

type laggingWatcher struct{ backend.Watcher }

func (s laggingStore) Watch(ctx context.Context, w backend.Watch) (backend.Watcher, error) {
	out, err := s.sharded.Watch(ctx, w)
	return laggingWatcher{out}, err
}

func (laggingWatcher) Next(context.Context) (backend.Delivery, error) {
	return backend.Delivery{}, &backend.LaggedError{}
}

func TestWatcher_AWatchThatLagsBeforeTheHubFollowsIsCounted(t *testing.T) {
	h, err := hub.New(hub.Config{Store: laggingStore{newSharded(t, 1, memory.Config{LogEntries: 10})}})
	if err != nil {
		t.Fatal(err)
	}
	w, err := h.Watch(t.Context(), hub.Watch{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if _, err := w.Next(t.Context()); !errors.Is(err, backend.ErrLagged) {
		t.Errorf("error %v", err)
	}
	if n := h.Lagged(); n != 1 {
		t.Errorf("%d watches have lagged", n)
	}
}

// Whatever comes between, each change is delivered once and in order per shard.
func TestWatcher_AWatchThatJoinsMissesNothing(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, _ := earlyFixture(t)
				rnd := rand.New(rand.NewPCG(seed, 1))
				from := f.store.position(t)
				written := 0
				write := func(n int) {
					for range n {
						f.write(rnd.IntN(3), fmt.Sprint("n", written))
						written++
					}
				}
				write(rnd.IntN(5))
				watches := make([]*hub.Watcher, 6)
				var wg sync.WaitGroup
				ctx, cancel := context.WithCancel(t.Context())
				seen := make([]int, len(watches))
				for i := range watches {
					w := f.watch(hub.Watch{From: from})
					watches[i] = w
					pause := time.Duration(rnd.IntN(4)) * time.Millisecond
					wg.Go(func() {
						at, marks := from, 0
						for {
							d, err := w.Next(ctx)
							if err != nil {
								break
							}
							for _, e := range d.Events {
								shard := f.store.Shard(e.Resource.Namespace)
								if e.Revision.Seq != at.Shard(shard).Seq+1 {
									t.Errorf("%s follows %s", e.Revision, at.Shard(shard))
								}
								at = at.With(shard, e.Revision)
								seen[i]++
							}
							if d.CaughtUp {
								marks++
							}
							time.Sleep(pause) // of the bubble
						}
						if marks != 1 {
							t.Errorf("%d marks", marks)
						}
					})
					write(rnd.IntN(2))
				}
				time.Sleep(time.Duration(rnd.IntN(10)) * time.Millisecond) // of the bubble
				write(rnd.IntN(4))
				f.run()
				write(5)
				time.Sleep(time.Second) // of the bubble
				cancel()
				wg.Wait()
				for i, w := range watches {
					if seen[i] != written {
						t.Errorf("watch %d saw %d of %d changes", i, seen[i], written)
					}
					w.Close()
				}
				f.stop()
			})
		})
	}
}
