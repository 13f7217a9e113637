package service_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/query"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

func TestService_ResourcesOfAllNamespacesWaitForAGlobalOne(t *testing.T) {
	onCampus(t, func(t *testing.T, h *house) {
		h.Start()
		for _, floor := range servicetest.Floors() {
			if w := h.Put(servicetest.OnFloor(floor, "Room", "a"), `{"siteRef":"s"}`).Warnings; len(w) != 1 || w[0].Message != "Waiting for Site/s to be created" {
				t.Errorf("warnings %+v", w)
			}
			h.Put(servicetest.OnFloor(floor, "Door", "a"), `{"roomRef":"a"}`)
		}
		h.Put(servicetest.Global("Site", "s"), `{"regionRef":"r"}`)
		h.SettleOnAll("a", "Waiting for Site/s to be ready")
		h.Put(servicetest.Global("Region", "r"), `{}`)
		h.SettleOnAll("a", "True")
		for _, floor := range servicetest.Floors() {
			h.Settles(servicetest.OnFloor(floor, "Door", "a"), "True")
			if w := h.Put(servicetest.OnFloor(floor, "Room", "b"), `{"siteRef":"s"}`).Warnings; len(w) != 0 {
				t.Errorf("a room at a site that is ready: %+v", w)
			}
			if got := h.SaysOf(servicetest.KeyOf(servicetest.OnFloor(floor, "Room", "b"))); got != "True" {
				t.Errorf("it says %q at once", got)
			}
		}
		// A site that is being deleted: those who rely on it go on, others wait for its end.
		h.MustPatch(servicetest.Global("Site", "s"), "", finalizers("example.org/hold"))
		if got := h.Remove(servicetest.Global("Site", "s")); got != service.Finalizing {
			t.Errorf("the deletion is %s", got)
		}
		for _, floor := range servicetest.Floors() {
			h.Put(servicetest.OnFloor(floor, "Room", "c"), `{"siteRef":"s"}`)
			if got := h.SaysOf(servicetest.KeyOf(servicetest.OnFloor(floor, "Room", "c"))); got != "Waiting for Site/s to be deleted" {
				t.Errorf("a room at a site that is being deleted says %q", got)
			}
		}
		h.MustPatch(servicetest.Global("Site", "s"), "", without("example.org/hold"))
		h.SettleOnAll("c", "Waiting for Site/s to be created")
		h.SettleOnAll("a", "True")
		h.Put(servicetest.Global("Site", "s"), `{"regionRef":"r"}`)
		h.SettleOnAll("c", "True")
		// Nothing holds the site. It holds its region.
		if got := h.Remove(servicetest.Global("Region", "r")); got != service.Pending {
			t.Errorf("the deletion of the region is %s", got)
		}
		if got := h.Remove(servicetest.Global("Site", "s")); got != service.Deleted {
			t.Errorf("the deletion of the site is %s", got)
		}
		h.Settles(servicetest.Global("Region", "r"), "none")
	})
}

func TestService_AResourceMovesFromOneGlobalResourceToAnother(t *testing.T) {
	onCampus(t, func(t *testing.T, h *house) {
		h.Start()
		if err := h.Writer.SetControlled(t.Context(), "Site", true); err != nil {
			t.Fatal(err)
		}
		h.Put(servicetest.Global("Site", "a"), `{}`)
		for _, floor := range servicetest.Floors() {
			h.Put(servicetest.OnFloor(floor, "Room", "m"), `{"siteRef":"a"}`)
		}
		h.SettleOnAll("m", "Waiting for Site/a to be ready")
		h.Report(servicetest.Global("Site", "a"), available)
		h.SettleOnAll("m", "True")
		for _, floor := range servicetest.Floors() {
			h.MustPatch(servicetest.OnFloor(floor, "Room", "m"), `{"siteRef":"b"}`, service.MetadataPatch{})
		}
		h.SettleOnAll("m", "Waiting for Site/b to be created")
		h.Put(servicetest.Global("Site", "b"), `{}`)
		h.SettleOnAll("m", "Waiting for Site/b to be ready")
		h.Report(servicetest.Global("Site", "b"), available)
		h.SettleOnAll("m", "True")
	})
}

func TestService_AGuardedReferenceHoldsAGlobalResourceInAStoreOfOneShard(t *testing.T) {
	servicetest.OnStores(t, servicetest.EachStore(), func(t *testing.T, store backend.Store) {
		h := openHouseOf(t, store, servicetest.Campus(true))
		h.Start()
		h.Put(servicetest.Global("Site", "s"), `{}`)
		for _, floor := range servicetest.Floors() {
			h.Put(servicetest.OnFloor(floor, "Room", "a"), `{"siteRef":"s"}`)
		}
		if got := h.Remove(servicetest.Global("Site", "s")); got != service.Pending {
			t.Fatalf("the deletion is %s", got)
		}
		if _, err := h.Writer.Create(t.Context(), service.CreateRequest{Identity: servicetest.OnFloor("late", "Room", "a"), Spec: json.RawMessage(`{"siteRef":"s"}`)}); err != nil {
			t.Fatal(err)
		}
		h.Settles(servicetest.OnFloor("late", "Room", "a"), "Waiting for Site/s to be deleted")
		for i, floor := range servicetest.Floors() {
			if h.SaysOf(servicetest.KeyOf(servicetest.Global("Site", "s"))) == "none" {
				t.Fatalf("the site is gone, and %d rooms are left", len(servicetest.Floors())-i)
			}
			h.Remove(servicetest.OnFloor(floor, "Room", "a"))
		}
		h.Settles(servicetest.Global("Site", "s"), "none")
		h.Settles(servicetest.OnFloor("late", "Room", "a"), "Waiting for Site/s to be created")
	})
}

// between is a store that does something before it applies the creation of one resource.
type between struct {
	backend.Store
	name string
	do   func()
}

func (s *between) Apply(ctx context.Context, b backend.Batch) (backend.Result, error) {
	if a := b.Actions[0]; a.Key.Name == s.name && a.If.Presence == backend.Absent && s.do != nil {
		do := s.do
		s.do = nil
		do()
	}
	return s.Store.Apply(ctx, b)
}

// Shard is [backend.Sharder.Shard], if the store has several shards.
func (s *between) Shard(namespace string) int {
	if sharder, ok := s.Store.(backend.Sharder); ok {
		return sharder.Shard(namespace)
	}
	return 0
}

// A site is created, and its change is handled, after a room has seen that it is missing and
// before the room is stored.
func TestService_AWaitIsNotForgottenIfItsTargetChangesBeforeItIsStored(t *testing.T) {
	onCampus(t, func(t *testing.T, h *house) {
		store := &between{Store: h.Store, name: "late"}
		h = openHouseOf(t, store, servicetest.Campus(false))
		h.Start()
		for _, floor := range servicetest.Floors() {
			site := "site-of-" + floor
			spec := fmt.Sprintf(`{"siteRef":%q}`, site)
			h.Put(servicetest.OnFloor("f1", "Room", "early-"+floor), spec)
			h.Put(servicetest.OnFloor("f2", "Room", "early-"+floor), spec)
			store.do = func() {
				h.Put(servicetest.Global("Site", site), `{}`)
				h.Settles(servicetest.OnFloor("f1", "Room", "early-"+floor), "True")
				h.Settles(servicetest.OnFloor("f2", "Room", "early-"+floor), "True")
			}
			h.Put(servicetest.OnFloor(floor, "Room", "late"), spec)
			if store.do != nil {
				t.Fatal("nothing came between")
			}
			h.Settles(servicetest.OnFloor(floor, "Room", "late"), "True")
		}
	})
}

// The index of a gateway has a site that is gone.
func TestService_NothingIsBoundToAGlobalResourceByAnOldIndex(t *testing.T) {
	onCampus(t, func(t *testing.T, h *house) {
		h.Start()
		h.Put(servicetest.Global("Site", "s"), `{}`)
		store := &between{Store: &deafened{Store: h.Store, after: "last"}}
		if sharder, ok := h.Store.(backend.Sharder); ok {
			store.Store = &shardedDeaf{Store: store.Store, Sharder: sharder}
		}
		g := openHouseOf(t, store, servicetest.Campus(false))
		g.Start()
		if err := g.Index().Filled(t.Context()); err != nil {
			t.Fatal(err)
		}
		h.Put(servicetest.Global("Region", "last"), `{}`)
		if page, err := g.Reader.List(t.Context(), query.ListRequest{Kind: "Region"}); err != nil || len(page.Edges) != 1 { // the index has heard of it
			t.Fatal(page, err)
		}
		h.Remove(servicetest.Global("Site", "s"))
		for _, floor := range servicetest.Floors() {
			if g.Index().Recent(servicetest.KeyOf(servicetest.Global("Site", "s"))) == nil {
				t.Fatal("the index has heard that the site is gone")
			}
			g.Put(servicetest.OnFloor(floor, "Room", "a"), `{"siteRef":"s"}`)
			if got := h.SaysOf(servicetest.KeyOf(servicetest.OnFloor(floor, "Room", "a"))); got != "Waiting for Site/s to be created" {
				t.Errorf("the room says %q", got)
			}
		}
	})
}

// shardedDeaf is a store that says in which shard a namespace lies.
type shardedDeaf struct {
	backend.Store
	backend.Sharder
}
