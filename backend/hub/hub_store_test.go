package hub_test

import (
	"context"
	"runtime"
	"sync"
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/backendtest"
	"github.com/sluicegw/sluice/backend/hub"
	"github.com/sluicegw/sluice/backend/memory"
)

// relayed is a store whose watches are those of a hub that runs over it. What
// the contract says of a store's own watch alone stays the store's: a bound on
// the lag of one watch, and what trimming does to a watch that is behind.
type relayed struct {
	*memory.Store
	hub  *hub.Hub
	own  bool
	once sync.Once
	stop func()
}

func relay(store *memory.Store, own bool) (*relayed, error) {
	h, err := hub.New(hub.Config{Store: store})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = h.Run(ctx)
	}()
	for following := false; !following; runtime.Gosched() {
		select {
		case <-done: // the store is closed
			following = true
		default:
			following = !h.Position().IsZero()
		}
	}
	return &relayed{Store: store, hub: h, own: own, stop: func() { cancel(); <-done }}, nil
}

func (r *relayed) Watch(ctx context.Context, w backend.Watch) (backend.Watcher, error) {
	if r.own || w.MaxLag != 0 {
		return r.Store.Watch(ctx, w)
	}
	out, err := r.hub.Watch(ctx, hub.Watch{From: w.From})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (r *relayed) Close() error {
	err := r.Store.Close() // ends the hub
	r.once.Do(r.stop)
	return err
}

func TestHub_TheContractHoldsThroughAHub(t *testing.T) {
	backendtest.Run(t, func(_ testing.TB, o backendtest.Options) backendtest.Instance {
		data := &memory.Data{}
		own := o.LogEntries != 0 || o.LogAge != 0 || o.LogBytes != 0
		return backendtest.Instance{
			Open: func() (backendtest.Store, error) {
				store, err := memory.Open(memory.Config{
					Data: data, Clock: o.Clock, Rand: o.Rand,
					LogEntries: o.LogEntries, LogAge: o.LogAge, LogBytes: o.LogBytes, PurgeInterval: o.PurgeInterval,
				})
				if err != nil {
					return nil, err
				}
				return relay(store, own)
			},
			Handle: func(s backendtest.Store) backendtest.Store {
				r, err := relay(s.(*relayed).Handle(), own)
				if err != nil {
					t.Fatal(err)
				}
				return r
			},
		}
	})
}
