package service_test

import (
	"context"
	"sync"
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/servicetest"
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
	if a := b.Actions[0]; err == nil && a.Key == servicetest.KeyOf(s.of) && a.Op == backend.OpPut && a.If.Presence == backend.Present {
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
		site := servicetest.Global("Site", "s")
		store := &paused{between: between{Store: h.Store}, of: site, changed: make(chan struct{}), resume: make(chan struct{})}
		h = openHouseOf(t, store, servicetest.Campus(false))
		h.Start()
		h.Put(servicetest.OnFloor("f1", "Room", "begin"), `{"siteRef":"begin"}`)
		h.Put(servicetest.Global("Site", "begin"), `{}`)
		h.Settles(servicetest.OnFloor("f1", "Room", "begin"), "True") // the gateway follows the changes
		h.Put(site, `{"regionRef":"r"}`)
		h.Put(servicetest.OnFloor("f1", "Room", "end"), `{"siteRef":"end"}`)
		h.Put(servicetest.Global("Region", "r"), `{}`)
		<-store.changed
		h.Remove(site)
		for _, floor := range servicetest.Floors() {
			h.Put(servicetest.OnFloor(floor, "Room", "late"), `{"siteRef":"s"}`)
		}
		close(store.resume)
		h.Put(servicetest.Global("Site", "end"), `{}`)
		h.Settles(servicetest.OnFloor("f1", "Room", "end"), "True") // after what came before in the shard of the sites
		h.SettleOnAll("late", "Waiting for Site/s to be created")
		h.Put(site, `{}`)
		h.SettleOnAll("late", "True")
	})
}
