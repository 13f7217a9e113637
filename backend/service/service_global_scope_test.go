package service_test

import (
	"context"
	"sync"
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
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
		was := campus(false)
		was[1].Scope, was[1].References = descriptor.Namespaced, nil
		floor := "f0"
		for _, f := range floors() {
			if !backend.SameShard(h.store, f, "") {
				floor = f
			}
		}
		room := onFloor(floor, "Room", "a")
		openHouseOf(t, h.store, was).put(room, `{"siteRef":"s"}`)
		store := &rebinding{between: between{Store: h.store}, key: keyFor(room)}
		g := openHouseOf(t, store, campus(false))
		came := make(chan struct{})
		store.do = func() {
			defer close(came)
			g.put(global("Site", "s"), `{}`)
			g.put(onFloor(floor, "Room", "b"), `{"siteRef":"t"}`)
			g.put(global("Site", "t"), `{}`)
			g.settles(onFloor(floor, "Room", "b"), "True") // after the change of the site before it
		}
		g.run()
		<-came
		g.settles(room, "True")
	})
}
