package service_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

// links of a chain.
const links = 50

// createChain creates Keys of which each waits for the one before, the last first, and
// none that can be ready.
func (h *house) createChain() {
	h.T.Helper()
	for i := links - 1; i > 0; i-- {
		h.Create("Key", fmt.Sprintf("k%d", i), fmt.Sprintf(`{"keyRef":"k%d"}`, i-1))
	}
}

func TestService_AChainIsReadyWhicheverWayItWasCreated(t *testing.T) {
	onEachStore(t, func(t *testing.T, h *house) {
		h.Start()
		h.createChain()
		h.Create("Key", "k0", `{}`)
		h.Becomes("Key", fmt.Sprintf("k%d", links-1), "True")
	})
}

// deafened is a store whose watches tell of nothing more once they have told of the
// creation of one resource.
type deafened struct {
	backend.Store
	after string
}

func (s *deafened) Watch(ctx context.Context, w backend.Watch) (backend.Watcher, error) {
	inner, err := s.Store.Watch(ctx, w)
	return &deafWatcher{Watcher: inner, after: s.after}, err
}

type deafWatcher struct {
	backend.Watcher
	after string
	deaf  bool
}

func (w *deafWatcher) Next(ctx context.Context) (backend.Delivery, error) {
	if w.deaf {
		<-ctx.Done()
		return backend.Delivery{}, ctx.Err()
	}
	d, err := w.Watcher.Next(ctx)
	w.deaf = slices.ContainsFunc(d.Events, func(e backend.Event) bool { return e.Resource.Name == w.after })
	return d, err
}

func TestService_AChainIsReadyWithoutWaitingForTheChangesOfItsLinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := servicetest.OpenMemory(t)
		h := openHouse(t, &deafened{Store: store, after: "k0"})
		h.Store = store
		h.Start()
		h.follows("first")
		h.createChain()
		h.Create("Key", "k0", `{}`)
		h.Becomes("Key", fmt.Sprintf("k%d", links-1), "True")
	})
}

func TestService_TheDependentsOfEachLinkOfAChainAreJudgedOnce(t *testing.T) {
	t.Parallel()
	store := &counted{Store: servicetest.OpenMemory(t)}
	h := openHouse(t, store)
	h.Start()
	h.createChain()
	h.Create("Key", "end", `{"keyRef":"unready"}`)
	h.Create("Key", "unready", `{"keyRef":"missing"}`)
	h.Becomes("Key", "end", "Waiting for Key/unready to be ready") // the follower has come this far
	store.ranges.Store(0)
	h.Create("Key", "k0", `{}`)
	h.Becomes("Key", fmt.Sprintf("k%d", links-1), "True")
	h.Create("Key", "missing", `{}`)
	h.Becomes("Key", "end", "True") // the follower has come past the changes of all links
	if n, most := store.ranges.Load(), int64(links+3); n > most {
		t.Errorf("dependents were read %d times, want %d at most: once for each link and for each of the three others", n, most)
	}
}
