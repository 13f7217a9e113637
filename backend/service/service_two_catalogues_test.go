package service_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/servicetest"
	"github.com/sluicegw/sluice/internal/redistest"
)

// annex is servicetest.Building with one more reference of Keys.
func annex() []descriptor.Kind {
	kinds, n := servicetest.Building(), 253
	key := &kinds[3]
	key.Spec.Fields = append(key.Spec.Fields, descriptor.Field{Name: "roomRef", Type: descriptor.TypeString, Constraint: descriptor.Constraint{MaxLength: &n}})
	key.References = append(key.References, descriptor.Reference{Path: "spec.roomRef", Kind: "Room", Field: "room"})
	return kinds
}

// follows waits until the reconciler of a gateway has judged all that was stored before:
// each gateway follows the changes in their order.
func (h *house) follows(name string) {
	h.T.Helper()
	h.Create("Door", "door-"+name, fmt.Sprintf(`{"roomRef":"room-%s"}`, name))
	h.Create("Room", "room-"+name, `{}`)
	h.Becomes("Door", "door-"+name, "True")
}

// writes counts the changes of a kind since a position, by name.
func (h *house) writes(from backend.Position, of string) map[string]int {
	h.T.Helper()
	w, err := h.Store.Watch(h.T.Context(), backend.Watch{From: from})
	if err != nil {
		h.T.Fatal(err)
	}
	defer w.Close()
	out := map[string]int{}
	for {
		d, err := w.Next(h.T.Context())
		if err != nil {
			h.T.Fatal(err)
		}
		for _, e := range d.Events {
			if e.Resource.Kind == of {
				out[e.Resource.Name]++
			}
		}
		if d.CaughtUp {
			return out
		}
	}
}

func TestService_GatewaysOfTwoCataloguesDoNotUndoWhatTheOtherJudged(t *testing.T) {
	onEachStore(t, func(t *testing.T, old *house) {
		start, err := old.Store.Position(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		old.Create("Guest", "g", `{}`)
		for _, name := range []string{"a", "b", "c"} { // judged by the old catalogue, with a reference that nothing guards
			old.Create("Key", name, `{"guestRef":"g"}`)
		}
		recent := openHouseOf(t, old.Store, annex())
		inOrder(old, recent)
		write := func(h *house, name string, spec string) {
			t.Helper()
			if err := h.patch("Key", name, spec, service.MetadataPatch{}); err != nil {
				t.Fatal(err)
			}
		}
		write(old, "a", `{"title":"from the old gateway"}`)
		write(recent, "b", `{"title":"from the new gateway"}`)
		write(recent, "c", `{"roomRef":"missing"}`)
		recent.Becomes("Key", "c", "Waiting for Room/missing to be created")
		for round := range 20 {
			old.follows(fmt.Sprintf("old-%d", round))
			recent.follows(fmt.Sprintf("new-%d", round))
		}
		// Created, patched, and judged by the new catalogue at most after each of these.
		for name, n := range old.writes(start, "Key") {
			if n > 4 {
				t.Errorf("key %s was written %d times for one create and one patch", name, n)
			}
		}
		if got := recent.Says("Key", "c"); got != "Waiting for Room/missing to be created" {
			t.Errorf("the key that refers by the new catalogue alone says %q", got)
		}
		recent.Create("Room", "missing", `{}`)
		recent.Becomes("Key", "c", "True")
	})
}

// inOrder runs two gateways, of which the store has accepted the catalogue of the second last.
func inOrder(old, recent *house) (stopRecent func()) {
	old.T.Helper()
	old.Start()
	return recent.Start()
}

func TestService_WhatAnOlderGatewayWritesIntoAReferenceThatItDoesNotKnowIsJudged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := servicetest.OpenMemory(t)
		before := annex() // in which the field is there, and no reference yet
		key := &before[3]
		key.References = key.References[:len(key.References)-1]
		guarded := annex()
		guarded[3].References[len(guarded[3].References)-1].Guarded = true
		old, recent := openHouseOf(t, store, before), openHouseOf(t, store, guarded)
		inOrder(old, recent)
		recent.Create("Room", "r", `{}`)
		recent.Create("Key", "k", `{"roomRef":"r"}`)
		if err := old.patch("Key", "k", `{"roomRef":"missing"}`, service.MetadataPatch{}); err != nil {
			t.Fatal(err)
		}
		recent.Becomes("Key", "k", "Waiting for Room/missing to be created")
		if slices.ContainsFunc(recent.Get("Key", "k").Refs, func(ref backend.Ref) bool { return ref.Key.Name == "missing" && ref.Bound }) {
			t.Error("the key relies on a room that is not there")
		}
		recent.Create("Room", "missing", `{}`)
		recent.Becomes("Key", "k", "True")
	})
}

func TestService_AReferenceThatACatalogueDropsHoldsNothingOnceItsFieldIsCleared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := servicetest.OpenMemory(t)
		guarded := annex()
		guarded[3].References[len(guarded[3].References)-1].Guarded = true
		dropped := annex()
		dropped[3].References = dropped[3].References[:len(dropped[3].References)-1]
		old, recent := openHouseOf(t, store, guarded), openHouseOf(t, store, dropped)
		inOrder(old, recent)
		old.Create("Room", "r", `{}`)
		old.Create("Key", "k", `{"roomRef":"r"}`)
		if err := recent.patch("Key", "k", `{"roomRef":null}`, service.MetadataPatch{}); err != nil {
			t.Fatal(err)
		}
		if got := recent.Delete("Room", "r"); got != service.Deleted {
			t.Errorf("the room that nobody names is %s", got)
		}
	})
}

func TestService_AnOlderGatewayKeepsWhatANewerOneHasBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := servicetest.OpenMemory(t)
		guarded := annex()
		last := &guarded[3].References[len(guarded[3].References)-1]
		last.Guarded = true
		old, recent := openHouse(t, store), openHouseOf(t, store, guarded)
		inOrder(old, recent)
		recent.Create("Room", "r", `{}`)
		recent.Create("Key", "k", `{"roomRef":"r"}`)
		for what, write := range []func() error{
			func() error { return old.patch("Key", "k", "", finalizers("example.org/x")) },
			func() error { return old.patch("Key", "k", `{"title":"x"}`, service.MetadataPatch{}) },
			func() error { return old.patch("Key", "k", `{"doorRefs":["d"]}`, service.MetadataPatch{}) },
			func() error { old.report("Key", "k", `{}`); return nil },
			func() error { return old.patch("Key", "k", `{"doorRefs":null}`, service.MetadataPatch{}) },
			func() error { return old.patch("Key", "k", "", without("example.org/x")) },
		} {
			if err := write(); err != nil {
				t.Fatalf("write %d: %v", what, err)
			}
			if got := old.Get("Key", "k").Refs; !slices.Contains(got, backend.Ref{Key: backend.Key{Kind: "Room", Namespace: "default", Name: "r"}, Bound: true}) {
				t.Errorf("after write %d the key refers to %+v", what, got)
			}
		}
		if got := recent.Delete("Room", "r"); got != service.Pending {
			t.Errorf("the room that a key relies on is %s", got)
		}
		if err := recent.patch("Key", "k", `{"roomRef":null}`, service.MetadataPatch{}); err != nil {
			t.Fatal(err)
		}
		if got := old.Get("Key", "k").Refs; len(got) != 0 {
			t.Errorf("the key refers to nothing any more and yet to %+v", got)
		}
	})
}

func TestService_AnOlderGatewayLeavesWhatANewerOneWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := servicetest.OpenMemory(t)
		old, recent := openHouse(t, store), openHouseOf(t, store, annex())
		stop := inOrder(old, recent)
		recent.Create("Key", "k", `{"roomRef":"missing"}`)
		stop() // so that its references are not evaluated again
		for _, spec := range []string{`{"title":"x"}`, `{"guestRef":"g"}`, `{"guestRef":null}`} {
			if err := old.patch("Key", "k", spec, service.MetadataPatch{}); err != nil {
				t.Fatalf("%s: %v", spec, err)
			}
			if got := old.Says("Key", "k"); got != "Waiting for Room/missing to be created" {
				t.Errorf("after %s through the older gateway the key says %q", spec, got)
			}
		}
		recent = openHouseOf(t, store, annex())
		recent.Start()
		recent.Create("Room", "missing", `{}`)
		recent.Becomes("Key", "k", "True")
	})
}

func TestService_AGuardedReferenceThatACatalogueAddsBindsWhatIsReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := servicetest.OpenMemory(t)
		before, guarded := annex(), annex()
		before[3].References = before[3].References[:len(before[3].References)-1]
		guarded[3].References[len(guarded[3].References)-1].Guarded = true
		old := openHouseOf(t, store, before)
		stop := old.Start()
		old.Create("Room", "r", `{}`)
		old.Create("Key", "k", `{"roomRef":"r"}`)
		stop()
		recent := openHouseOf(t, store, guarded)
		recent.Start()
		room := backend.Key{Kind: "Room", Namespace: "default", Name: "r"}
		redistest.Await(t, "the key is bound to its room", func() error {
			if refs := recent.Get("Key", "k").Refs; !slices.Contains(refs, backend.Ref{Key: room, Bound: true}) {
				return fmt.Errorf("it refers to %+v", refs)
			}
			return nil
		})
		if got := recent.Delete("Room", "r"); got != service.Pending {
			t.Errorf("the room that a key relies on is %s", got)
		}
	})
}

func TestService_AnOlderGatewayWhoseKindHasNoReferencesLeavesThoseOfANewerOne(t *testing.T) {
	store := servicetest.OpenMemory(t)
	before, guarded := annex(), annex()
	before[3].References = nil
	guarded[3].References[len(guarded[3].References)-1].Guarded = true
	old, recent := openHouseOf(t, store, before), openHouseOf(t, store, guarded)
	stop := inOrder(old, recent)
	recent.Create("Room", "r", `{}`)
	recent.Create("Key", "bound", `{"roomRef":"r"}`)
	recent.Create("Key", "waits", `{"roomRef":"missing"}`)
	stop() // so that nobody judges them anew
	room := backend.Ref{Key: backend.Key{Kind: "Room", Namespace: "default", Name: "r"}, Bound: true}
	for _, title := range []string{"1", "2", "3"} {
		for _, key := range []string{"bound", "waits"} {
			if err := old.patch("Key", key, `{"title":"`+title+`"}`, service.MetadataPatch{}); err != nil {
				t.Fatal(err)
			}
		}
		if got := old.Get("Key", "bound").Refs; !slices.Contains(got, room) {
			t.Errorf("after title %s the key refers to %+v", title, got)
		}
		if got := old.Says("Key", "waits"); got != "Waiting for Room/missing to be created" {
			t.Errorf("after title %s the key that waits says %q", title, got)
		}
	}
}

func TestService_AWriteOfMetadataThroughAnOlderGatewayBindsNothing(t *testing.T) {
	store := servicetest.OpenMemory(t)
	guarded, dropped := annex(), annex()
	guarded[3].References[len(guarded[3].References)-1].Guarded = true
	dropped[3].References = dropped[3].References[:len(dropped[3].References)-1]
	old, recent := openHouseOf(t, store, guarded), openHouseOf(t, store, dropped)
	stop := inOrder(old, recent)
	recent.Create("Key", "k", `{"roomRef":"gone"}`)
	stop() // so that its references are not evaluated again
	if err := old.patch("Key", "k", "", finalizers("example.org/x")); err != nil {
		t.Fatal(err)
	}
	old.report("Key", "k", `{}`)
	if got := old.Get("Key", "k").Refs; slices.ContainsFunc(got, func(ref backend.Ref) bool { return ref.Bound }) {
		t.Errorf("the key relies on %+v, of which nobody has looked whether it is there", got)
	}
}
