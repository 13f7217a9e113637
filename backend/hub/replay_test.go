package hub_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/hub"
	"github.com/sluicegw/sluice/backend/memory"
)

// slowLog is a store whose log takes a second to read, by as many as ask.
type slowLog struct {
	backend.Store
	mu        sync.Mutex
	now, most int
}

type slowWatcher struct {
	backend.Watcher
	log *slowLog
}

func (s *slowLog) Watch(ctx context.Context, w backend.Watch) (backend.Watcher, error) {
	out, err := s.Store.Watch(ctx, w)
	if err != nil || w.MaxLag > 0 { // the hub itself
		return out, err
	}
	return &slowWatcher{out, s}, nil
}

func (w *slowWatcher) Next(ctx context.Context) (backend.Delivery, error) {
	w.log.mu.Lock()
	w.log.now++
	w.log.most = max(w.log.most, w.log.now)
	w.log.mu.Unlock()
	time.Sleep(time.Second) // of the bubble
	d, err := w.Watcher.Next(ctx)
	w.log.mu.Lock()
	w.log.now--
	w.log.mu.Unlock()
	return d, err
}

func TestReplay_ManyClientsThatComeBackReadTheLogAFewAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, err := memory.Open(memory.Config{})
		if err != nil {
			t.Fatal(err)
		}
		log := &slowLog{Store: store}
		h, err := hub.New(hub.Config{Store: log})
		if err != nil {
			t.Fatal(err)
		}
		from, err := store.Position(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		const changes, clients = 10, 300
		for range changes {
			if _, err := store.Apply(t.Context(), backend.Batch{RequestID: "r", Deadline: time.Now().Add(time.Minute), Actions: []backend.Action{
				{Key: backend.Key{Kind: "Net", Name: "n"}, Op: backend.OpPut, Put: backend.Put{UID: "u", Body: backend.EncodeBody([]byte("{}"))}},
			}}); err != nil {
				t.Fatal(err)
			}
		}
		ctx, stop := context.WithCancel(t.Context())
		var running, reading sync.WaitGroup
		running.Go(func() { _ = h.Run(ctx) })
		synctest.Wait()
		for range clients {
			reading.Go(func() {
				w, err := h.Watch(ctx, hub.Watch{From: from})
				if err != nil {
					t.Error(err)
					return
				}
				defer w.Close()
				for n := 0; n < changes; {
					d, err := w.Next(ctx)
					if err != nil {
						t.Error(err)
						return
					}
					n += len(d.Events)
				}
			})
		}
		reading.Wait()
		stop()
		running.Wait()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
		if log.most != 64 {
			t.Errorf("%d read the log at the same time, want 64", log.most)
		}
	})
}
