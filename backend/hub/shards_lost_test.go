package hub_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/hub"
	"github.com/sluicegw/sluice/backend/memory"
)

func TestShards_ALostShardExpiresThoseWhoCoverItAndNobodyElse(t *testing.T) {
	inBubble(t, hub.Config{}, func(f *fixture) {
		all, lost, kept := f.live(hub.Watch{}), f.live(f.in(1)), f.live(f.in(0))
		defer all.Close()
		defer lost.Close()
		defer kept.Close()
		f.store.lose(1)
		f.write(1, "unseen")
		f.write(0, "a")
		for _, w := range []*hub.Watcher{all, lost} {
			var err error
			for err == nil {
				_, err = w.Next(f.Context())
			}
			var e *backend.ExpiredError
			if !errors.As(err, &e) || !slices.Equal(e.Shards, []int{1}) {
				f.Errorf("error %v", err)
			}
		}
		got, _ := f.all(kept, 1)
		f.want(got, "a")
		time.Sleep(time.Second) // of the bubble
		f.write(1, "b")
		f.write(0, "c")
		got, _ = f.all(kept, 1)
		f.want(got, "c")
		synctest.Wait()
		if !kept.Position().Equal(f.store.position(f.T)) {
			f.Error("the place did not move on over the lost shard")
		}
		fresh := f.live(f.in(1))
		defer fresh.Close()
		f.write(1, "d")
		got, _ = f.all(fresh, 1)
		f.want(got, "d")
	})
}

func TestShards_OnlyACoveredShardMakesAPositionExpire(t *testing.T) {
	inBubble(t, hub.Config{}, func(f *fixture) {
		from := f.Position()
		f.write(0, "a")
		f.store.lose(1)
		time.Sleep(time.Second) // of the bubble
		req := f.in(0)
		req.From = from
		w := f.watch(req)
		defer w.Close()
		got, _ := f.all(w, 1)
		f.want(got, "a")
		for name, req := range map[string]hub.Watch{"all": {}, "the lost one": f.in(1)} {
			req.From = from
			if _, err := f.Watch(f.Context(), req); !errors.Is(err, backend.ErrPositionExpired) {
				f.Errorf("%s: error %v", name, err)
			}
		}
		if _, err := f.Watch(f.Context(), hub.Watch{From: backend.NewPosition(from.Shard(0))}); !errors.Is(err, backend.ErrPositionExpired) {
			f.Errorf("another number of shards: error %v", err)
		}
	})
}

func TestShards_WhatAWatchDoesNotCoverIsNotReadAgain(t *testing.T) {
	inBubble(t, hub.Config{}, func(f *fixture) {
		req := f.in(0)
		req.From = f.Position()
		f.write(1, "a", "b")
		opened := f.store.watches
		f.live(req).Close()
		if n := f.store.watches - opened; n != 0 {
			f.Errorf("%d watches of the store", n)
		}
	})
}

// fickle is a store whose first watch, the hub's, can be held and made to expire.
type fickle struct {
	*memory.Store
	mu     sync.Mutex
	hold   chan struct{}
	expire chan struct{}
}

type heldWatcher struct {
	backend.Watcher
	f *fickle
}

func (s *fickle) Watch(ctx context.Context, w backend.Watch) (backend.Watcher, error) {
	inner, err := s.Store.Watch(ctx, w)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hold != nil || err != nil {
		return inner, err
	}
	s.hold = make(chan struct{})
	return &heldWatcher{inner, s}, nil
}

func (w *heldWatcher) Next(ctx context.Context) (backend.Delivery, error) {
	select {
	case <-w.f.hold:
		<-w.f.expire
		return backend.Delivery{}, backend.ErrPositionExpired
	default:
		return w.Watcher.Next(ctx)
	}
}

func TestShards_AResumerGoesOnWhereTheHubAloneLostItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, err := memory.Open(memory.Config{})
		if err != nil {
			t.Fatal(err)
		}
		s := &fickle{Store: store, expire: make(chan struct{})}
		h, err := hub.New(hub.Config{Store: s})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ran := make(chan error, 1)
		go func() { ran <- h.Run(ctx) }()
		synctest.Wait()
		from := h.Position()
		n := 0
		write := func(times int) {
			for range times {
				n++
				if _, err := s.Apply(ctx, backend.Batch{RequestID: "r", Deadline: time.Now().Add(time.Second), Actions: []backend.Action{
					{Key: key("default", fmt.Sprint(n)), Op: backend.OpPut, Put: backend.Put{UID: "u", Body: []byte("j1")}},
				}}); err != nil {
					t.Fatal(err)
				}
			}
			synctest.Wait()
		}
		write(5)
		close(s.hold)
		write(1) // the last that the hub sees
		w, err := h.Watch(ctx, hub.Watch{From: from})
		if err != nil {
			t.Fatal(err)
		}
		write(500)
		close(s.expire)
		time.Sleep(time.Second) // of the bubble
		write(5)
		for seen := 0; seen < n; {
			d, err := w.Next(ctx)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range d.Events {
				if seen++; e.Resource.Name != fmt.Sprint(seen) {
					t.Fatalf("change %s after %d", e.Resource.Name, seen-1)
				}
			}
		}
		w.Close()
		stop()
		if err := <-ran; err != nil {
			t.Error(err)
		}
	})
}

func TestShards_SubscribersWaitWhileTheStoreIsAway(t *testing.T) {
	inBubble(t, hub.Config{}, func(f *fixture) {
		w := f.live(hub.Watch{})
		defer w.Close()
		f.write(0, "a")
		f.store.cut()
		time.Sleep(10 * time.Minute) // of the bubble
		if _, err := f.Watch(f.Context(), hub.Watch{}); !errors.Is(err, backend.ErrUnavailable) {
			f.Errorf("a new watch: error %v", err)
		}
		f.store.mend()
		before := time.Now()
		f.write(1, "b")
		got, _ := f.all(w, 2)
		slices.Sort(got)
		f.want(got, "a b")
		if d := time.Since(before); d > 5*time.Second {
			f.Errorf("the hub came back after %v", d)
		}
	})
}
