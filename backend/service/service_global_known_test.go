package service_test

import (
	"context"
	"sync"
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// paused is a store that pauses after it has changed a resource that was there: it says so, and
// waits until it may go on.
type paused struct {
	between
	of              kind.Identity
	changed, resume chan struct{}
	once            sync.Once
}

func (s *paused) Apply(ctx context.Context, b backend.Batch) (backend.Result, error) {
	res, err := s.Store.Apply(ctx, b)
	if a := b.Actions[0]; err == nil && a.Key == keyFor(s.of) && a.Op == backend.OpPut && a.If.Presence == backend.Present {
		s.once.Do(func() {
			close(s.changed)
			<-s.resume
		})
	}
	return res, err
}

// A gateway makes a site ready, and is about to wake the rooms that wait for it. Before it reads
// which these are, the site is gone, and a room comes that waits for it.
func TestService_NothingIsBoundToAGlobalResourceThatWasReadyBeforeTheWaitBegan(t *testing.T) {
	onCampus(t, func(t *testing.T, h *house) {
		site := global("Site", "s")
		store := &paused{between: between{Store: h.store}, of: site, changed: make(chan struct{}), resume: make(chan struct{})}
		h = openHouseOf(t, store, campus(false))
		h.run()
		h.put(onFloor("f1", "Room", "begin"), `{"siteRef":"begin"}`)
		h.put(global("Site", "begin"), `{}`)
		h.settles(onFloor("f1", "Room", "begin"), "True") // the gateway follows the changes
		h.put(site, `{"regionRef":"r"}`)
		h.put(onFloor("f1", "Room", "end"), `{"siteRef":"end"}`)
		h.put(global("Region", "r"), `{}`)
		<-store.changed
		h.remove(site)
		for _, floor := range floors() {
			h.put(onFloor(floor, "Room", "late"), `{"siteRef":"s"}`)
		}
		close(store.resume)
		h.put(global("Site", "end"), `{}`)
		h.settles(onFloor("f1", "Room", "end"), "True") // after what came before in the shard of the sites
		h.settleOnAll("late", "Waiting for Site/s to be created")
		h.put(site, `{}`)
		h.settleOnAll("late", "True")
	})
}
