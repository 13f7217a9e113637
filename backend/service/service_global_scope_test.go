package service_test

import (
	"context"
	"sync"
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

// rebinding is a store that does something before it rebinds a resource for the first time.
type rebinding struct {
	between
	key  backend.Key
	once sync.Once
	do   func()
}

func (s *rebinding) Apply(ctx context.Context, b backend.Batch) (backend.Result, error) {
	if a := b.Actions[0]; a.Op == backend.OpRebind && a.Key == s.key {
		s.once.Do(s.do)
	}
	return s.Store.Apply(ctx, b)
}

// Sites become GLOBAL while there are none and a room waits for one. The site is created, and its
// change is handled, between the read of the room and the rebind of its reference.
func TestService_AWaitIsNotForgottenIfItsTargetsKindBecomesGlobal(t *testing.T) {
	onCampus(t, func(t *testing.T, h *house) {
		was := servicetest.Campus(false)
		was[1].Scope, was[1].References = descriptor.Namespaced, nil
		floor := "f0"
		for _, f := range servicetest.Floors() {
			if !backend.SameShard(h.Store, f, "") {
				floor = f
			}
		}
		room := servicetest.OnFloor(floor, "Room", "a")
		openHouseOf(t, h.Store, was).Put(room, `{"siteRef":"s"}`)
		store := &rebinding{between: between{Store: h.Store}, key: servicetest.KeyOf(room)}
		g := openHouseOf(t, store, servicetest.Campus(false))
		came := make(chan struct{})
		store.do = func() {
			defer close(came)
			g.Put(servicetest.Global("Site", "s"), `{}`)
			g.Put(servicetest.OnFloor(floor, "Room", "b"), `{"siteRef":"t"}`)
			g.Put(servicetest.Global("Site", "t"), `{}`)
			g.Settles(servicetest.OnFloor(floor, "Room", "b"), "True") // after the change of the site before it
		}
		g.Start()
		<-came
		g.Settles(room, "True")
	})
}
