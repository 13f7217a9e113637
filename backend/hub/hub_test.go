package hub_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/hub"
	"github.com/sluicegw/sluice/backend/memory"
)

// fixture is a hub over a store of three shards, in a bubble of its own time.
type fixture struct {
	*testing.T
	*hub.Hub
	store *sharded
	stop  func() // ends Run
	// last is what team has written.
	last *backend.Resource
}

// inBubble runs a test with a hub that follows its store.
func inBubble(t *testing.T, cfg hub.Config, test func(*fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := &fixture{T: t, store: newSharded(t, 3, memory.Config{LogEntries: 1000})}
		cfg.Store = f.store
		var err error
		if f.Hub, err = hub.New(cfg); err != nil {
			t.Fatal(err)
		}
		f.run()
		test(f)
		f.stop()
	})
}

func (f *fixture) run() {
	ctx, cancel := context.WithCancel(f.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := f.Hub.Run(ctx); err != nil {
			f.Errorf("run: %v", err)
		}
	}()
	f.stop = func() { cancel(); <-done }
	synctest.Wait()
}

func (f *fixture) watch(req hub.Watch) *hub.Watcher {
	f.Helper()
	w, err := f.Watch(f.Context(), req)
	if err != nil {
		f.Fatalf("watch: %v", err)
	}
	return w
}

// live opens a watch and takes its mark.
func (f *fixture) live(req hub.Watch) *hub.Watcher {
	f.Helper()
	w := f.watch(req)
	if d := f.next(w); !d.CaughtUp {
		f.Fatalf("first delivery %+v", d)
	}
	return w
}

func (f *fixture) next(w *hub.Watcher) backend.Delivery {
	f.Helper()
	d, err := w.Next(f.Context())
	if err != nil {
		f.Fatalf("next: %v", err)
	}
	return d
}

// waiting starts a Next and returns what it says in the end.
func waiting(ctx context.Context, w *hub.Watcher) (d *backend.Delivery, err *error, done chan struct{}) {
	d, err, done = new(backend.Delivery), new(error), make(chan struct{})
	go func() {
		defer close(done)
		*d, *err = w.Next(ctx)
	}()
	synctest.Wait()
	return d, err, done
}

// write stores in a shard.
func (f *fixture) write(shard int, names ...string) {
	f.Helper()
	for _, name := range names {
		f.store.write(f.T, key(f.store.inShard(shard), name))
	}
}

// all takes events until n have come, and reports whether the mark was among them.
func (f *fixture) all(w *hub.Watcher, n int) (names []string, marks int) {
	f.Helper()
	for len(names) < n {
		d := f.next(w)
		for _, e := range d.Events {
			names = append(names, e.Resource.Name)
		}
		if d.CaughtUp {
			marks++
		}
	}
	return names, marks
}

func (f *fixture) want(got []string, want string) {
	f.Helper()
	if s := strings.Join(got, " "); s != want {
		f.Errorf("got %q, want %q", s, want)
	}
}

// in covers one shard alone.
func (f *fixture) in(shard int) hub.Watch {
	ns := f.store.inShard(shard)
	return hub.Watch{Namespaces: []string{ns}, Covers: func(k backend.Key) bool { return k.Namespace == ns }}
}

func TestHub_AnEarlierWriteNeverComesAfterAWatchFromNow(t *testing.T) {
	inBubble(t, hub.Config{}, func(f *fixture) {
		for range 100 { // the hub is sometimes behind and sometimes not
			f.write(0, "before")
			w := f.watch(hub.Watch{})
			synctest.Wait()
			if d := f.next(w); !d.CaughtUp || len(d.Events) > 0 || !d.Position.Equal(f.store.position(f.T)) {
				f.Errorf("first delivery %+v", d)
			}
			w.Close()
		}
	})
}

func TestHub_TheCursorOfALiveEventIsTheVectorOfTheHub(t *testing.T) {
	inBubble(t, hub.Config{}, func(f *fixture) {
		one, two := f.live(hub.Watch{}), f.live(hub.Watch{})
		defer one.Close()
		defer two.Close()
		for i := range 30 {
			f.write(i%3, fmt.Sprint(i))
		}
		synctest.Wait()
		a, b := f.next(one), f.next(two)
		for i := range a.Events {
			if e := a.Events[i]; !e.Position.Equal(b.Events[i].Position) || e.Revision != b.Events[i].Revision {
				f.Errorf("event %d differs", i)
			}
		}
		if len(a.Events) != 30 || !a.Position.Equal(f.Position()) {
			f.Errorf("%d events up to %s, the hub is at %s", len(a.Events), a.Position, f.Position())
		}
	})
}

func TestHub_ASubscriberIsNotWokenByWhatItDoesNotCoverButItsPlaceMovesOn(t *testing.T) {
	inBubble(t, hub.Config{}, func(f *fixture) {
		for name, req := range map[string]hub.Watch{
			"by shard": f.in(1), "by key": {Covers: func(k backend.Key) bool { return k.Name == "mine" }},
		} {
			w := f.live(req)
			d, err, done := waiting(f.Context(), w)
			f.write(0, "other")
			f.write(2, "other", "other")
			synctest.Wait()
			select {
			case <-done:
				f.Errorf("%s: woken by %+v %v", name, *d, *err)
			default:
			}
			if p := w.Position(); !p.Equal(f.store.position(f.T)) {
				f.Errorf("%s: place %s, want %s", name, p, f.store.position(f.T))
			}
			f.write(1, "mine")
			<-done
			if len(d.Events) != 1 || !d.Position.Equal(f.store.position(f.T)) {
				f.Errorf("%s: woken with %+v", name, d)
			}
			w.Close()
		}
	})
}

func TestHub_ANextWhoseContextEndsIsNoEndOfTheWatch(t *testing.T) {
	inBubble(t, hub.Config{}, func(f *fixture) {
		w := f.live(hub.Watch{})
		defer w.Close()
		ctx, cancel := context.WithTimeout(f.Context(), time.Second)
		defer cancel()
		if _, err := w.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
			f.Errorf("error %v", err)
		}
		f.write(0, "a")
		got, _ := f.all(w, 1)
		f.want(got, "a")
	})
}

func TestHub_ASlowSubscriberLagsAndResumesWithoutGapOrRepeat(t *testing.T) {
	for name, cfg := range map[string]hub.Config{"by events": {Events: 3}, "by bytes": {Bytes: 700}} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, cfg, func(f *fixture) {
				w := f.live(hub.Watch{})
				f.write(0, "a")
				synctest.Wait()
				got, _ := f.all(w, 1)
				f.write(1, "b", "c")
				f.write(2, "d", "e", "f")
				synctest.Wait()
				_, err := w.Next(f.Context())
				var lagged *backend.LaggedError
				if !errors.As(err, &lagged) {
					f.Fatalf("error %v", err)
				}
				if _, again := w.Next(f.Context()); again != err {
					f.Errorf("then %v", again)
				}
				w.Close()
				if n := f.Hub.Lagged(); n != 1 {
					t.Errorf("%d watches lagged", n)
				}
				next := f.watch(hub.Watch{From: lagged.Position})
				defer next.Close()
				more, _ := f.all(next, 5)
				got = append(got, more...)
				slices.Sort(got) // of several shards
				f.want(got, "a b c d e f")
			})
		})
	}
}

func TestHub_AQueueThatOverflowsDuringAReplayBeginsAnew(t *testing.T) {
	inBubble(t, hub.Config{Events: 4}, func(f *fixture) {
		from := f.Position()
		var want []string
		add := func(n int) {
			for range n {
				name := fmt.Sprint(len(want))
				want = append(want, name)
				f.write(0, name)
			}
			synctest.Wait()
		}
		add(300)
		w := f.watch(hub.Watch{From: from})
		defer w.Close()
		got, marks := f.all(w, 1)
		add(50)
		more, n := f.all(w, 300-len(got))
		got, marks = append(got, more...), marks+n
		add(3)
		more, n = f.all(w, 353-len(got))
		got, marks = append(got, more...), marks+n
		add(2)
		more, n = f.all(w, 2)
		f.want(append(got, more...), strings.Join(want, " "))
		if marks+n != 1 {
			f.Errorf("%d marks", marks+n)
		}
	})
}

func TestHub_SignsOfLifeExpireNoPlace(t *testing.T) {
	inBubble(t, hub.Config{}, func(f *fixture) {
		f.write(0, "a")
		w := f.live(hub.Watch{})
		defer w.Close()
		at := w.Position()
		for range 2000 { // twice what the log keeps
			f.store.write(t, backend.Key{Kind: "_lease", Namespace: f.store.inShard(0), Name: "l"})
		}
		synctest.Wait()
		for _, p := range []backend.Position{at, w.Position(), f.Position()} {
			again := f.live(hub.Watch{From: p})
			f.write(0, "b")
			got, _ := f.all(again, 1)
			f.want(got[:1], "b")
			again.Close()
		}
	})
}

func TestHub_ClosingEndsAWaitingNextInEveryState(t *testing.T) {
	inBubble(t, hub.Config{}, func(f *fixture) {
		from := f.Position()
		f.write(0, "a")
		for name, open := range map[string]func() *hub.Watcher{
			"live": func() *hub.Watcher { return f.live(hub.Watch{}) },
			"replaying": func() *hub.Watcher {
				w := f.watch(hub.Watch{From: from})
				f.all(w, 1)
				return w
			},
		} {
			w := open()
			_, err, done := waiting(f.Context(), w)
			w.Close()
			w.Close()
			<-done
			if _, again := w.Next(f.Context()); !errors.Is(*err, backend.ErrClosed) || !errors.Is(again, backend.ErrClosed) {
				f.Errorf("%s: errors %v, %v", name, *err, again)
			}
		}
	})
}

func TestHub_TheEndOfTheHubEndsItsWatchesAndLaterOnesAreTheStores(t *testing.T) {
	inBubble(t, hub.Config{}, func(f *fixture) {
		w := f.live(hub.Watch{})
		_, err, done := waiting(f.Context(), w)
		f.stop()
		<-done
		w.Close()
		if !errors.Is(*err, backend.ErrClosed) {
			f.Errorf("error %v", *err)
		}
		own := f.live(f.in(1))
		f.write(0, "other")
		f.write(1, "a", "b")
		got, _ := f.all(own, 2)
		f.want(got, "a b")
		_, err, done = waiting(f.Context(), own)
		own.Close()
		<-done
		if !errors.Is(*err, backend.ErrClosed) {
			f.Errorf("error %v", *err)
		}
		f.run()
		again := f.live(hub.Watch{From: f.store.position(f.T)})
		again.Close()
	})
}

func TestHub_ThereAreNoMoreSubscribersThanConfigured(t *testing.T) {
	inBubble(t, hub.Config{MaxSubscribers: 1}, func(f *fixture) {
		release, err := f.Reserve()
		if err != nil {
			f.Fatal(err)
		}
		if _, err := f.Reserve(); !errors.Is(err, hub.ErrFull) {
			f.Errorf("error %v", err)
		}
		f.live(hub.Watch{}).Close() // the gateway's own work is not counted
		release()
		release()
		if n := f.Subscribers(); n != 0 {
			f.Errorf("%d subscribers are left", n)
		}
		if _, err := f.Reserve(); err != nil {
			f.Error(err)
		}
		if err := f.Hub.Run(f.Context()); !errors.Is(err, hub.ErrRunning) {
			f.Errorf("a second Run: error %v", err)
		}
	})
}

func TestHub_AConfigurationNamesAllItsProblems(t *testing.T) {
	_, err := hub.New(hub.Config{Events: -1, Bytes: -1, MaxSubscribers: -1})
	for _, want := range []string{"Store", "Events", "Bytes", "MaxSubscribers"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not name %s", err, want)
		}
	}
}

// lags keeps the values that it takes.
type lags []float64

func (l *lags) Observe(value float64) { *l = append(*l, value) }

func TestHub_MeasuresHowLateItPassesChangesOnAndWhatWaits(t *testing.T) {
	measured := &lags{}
	inBubble(t, hub.Config{Lag: measured}, func(f *fixture) {
		w := f.live(hub.Watch{})
		f.write(0, "a", "b")
		synctest.Wait()
		want := hub.Queues{Watches: 1, Events: 2, Longest: 2}
		if got := f.Queues(); got != want {
			t.Errorf("what waits is %+v, want %+v", got, want)
		}
		f.all(w, 2)
		if got := f.Queues(); got.Events != 0 {
			t.Errorf("after they were taken, %+v", got)
		}
		w.Close()
		if got := f.Queues(); got.Watches != 0 {
			t.Errorf("after the end, %+v", got)
		}
		if len(*measured) == 0 || slices.Max(*measured) != 0 {
			t.Errorf("the lags are %v in a bubble whose time stands still", *measured)
		}
	})
}
