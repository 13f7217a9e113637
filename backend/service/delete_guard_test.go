package service_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

// finalizers adds some, and without removes some.
func finalizers(names ...string) service.MetadataPatch {
	return service.MetadataPatch{AddFinalizers: names}
}

func without(names ...string) service.MetadataPatch {
	return service.MetadataPatch{RemoveFinalizers: names}
}

const available = `{"conditions":[{"type":"Available","status":"True","reason":"Success"},{"type":"Progressing","status":"False","reason":"Success"}]}`

func TestDelete_FinalizersHoldAResourceUntilTheyAreRemoved(t *testing.T) {
	onEachStore(t, func(t *testing.T, h *house) {
		h.Start()
		h.Create("Room", "r", `{}`)
		h.Create("Door", "d", `{"roomRef":"r"}`)
		if err := h.patch("Room", "r", "", finalizers("example.org/cloud", "example.org/dns")); err != nil {
			t.Fatal(err)
		}
		if got := h.Delete("Room", "r"); got != service.Pending {
			t.Errorf("the deletion of what others rely on is %s", got)
		}
		if got := h.Says("Room", "r"); got != "True" {
			t.Errorf("while others rely on it, it says %q", got)
		}
		h.Delete("Door", "d")
		h.Becomes("Room", "r", "Waiting for finalizer example.org/cloud to be removed\nWaiting for finalizer example.org/dns to be removed")
		if got := h.Delete("Room", "r"); got != service.Finalizing {
			t.Errorf("the deletion of what finalizers alone hold is %s", got)
		}
		before := h.Get("Room", "r").Revision
		h.report("Room", "r", `{"conditions":[{"type":"Available","status":"False","reason":"Progressing","message":"detaching"}]}`)
		for what, err := range map[string]error{
			"a finalizer more":  h.patch("Room", "r", "", finalizers("example.org/new")),
			"another spec":      h.patch("Room", "r", `{"title":"x"}`, service.MetadataPatch{}),
			"a label":           h.patch("Room", "r", "", servicetest.Labelled("a", "b")),
			"one more and less": h.patch("Room", "r", "", service.MetadataPatch{AddFinalizers: []string{"example.org/new"}, RemoveFinalizers: []string{"example.org/dns"}}),
			"a spec and a less": h.patch("Room", "r", `{"title":"x"}`, without("example.org/dns")),
		} {
			if servicetest.CodeOf(err) != failure.CodeBeingDeleted {
				t.Errorf("%s during deletion: %v", what, err)
			}
		}
		if err := h.patch("Room", "r", "", without("example.org/dns", "example.org/absent")); err != nil {
			t.Fatal(err)
		}
		if now := h.Get("Room", "r"); now == nil || now.Finalizers != 1 || now.Revision == before {
			t.Errorf("stored %+v", now)
		}
		if err := h.patch("Room", "r", "", without("example.org/cloud")); err != nil {
			t.Fatal(err)
		}
		h.Becomes("Room", "r", "none")
	})
}

func TestDelete_AControllerReportsWhatItCleansUpOfAResourceThatWaited(t *testing.T) {
	onEachStore(t, func(t *testing.T, h *house) {
		h.Start()
		h.Create("Door", "d", `{"roomRef":"r"}`)
		if err := h.patch("Door", "d", "", finalizers("example.org/cloud")); err != nil {
			t.Fatal(err)
		}
		if got := h.Delete("Door", "d"); got != service.Finalizing {
			t.Fatalf("the deletion is %s", got)
		}
		w := h.report("Door", "d", `{"conditions":[{"type":"Available","status":"False","reason":"Progressing","message":"detaching"},{"type":"Progressing","status":"True","reason":"Progressing","message":"detaching"}]}`)
		if got := h.Says("Door", "d"); got != "detaching" || len(w) > 0 {
			t.Errorf("the door says %q, warnings %+v", got, w)
		}
	})
}

func TestDelete_AControllerSaysWhenResourcesOfItsKindsAreReady(t *testing.T) {
	onEachStore(t, func(t *testing.T, h *house) {
		h.Start()
		if err := h.Writer.SetControlled(t.Context(), "Room", true); err != nil {
			t.Fatal(err)
		}
		if err := h.Writer.SetControlled(t.Context(), "Guest", true); servicetest.CodeOf(err) != failure.CodeBadUserInput {
			t.Errorf("a kind without conditions: %v", err)
		}
		h.Create("Room", "r", `{}`)
		h.Create("Door", "d", `{"roomRef":"r"}`)
		if got := h.Says("Room", "r"); got != "All dependencies are ready; the controller has not acted yet" {
			t.Errorf("the room says %q", got)
		}
		if got := h.Says("Door", "d"); got != "Waiting for Room/r to be ready" {
			t.Errorf("the door says %q", got)
		}
		// While it waits, a status cannot say otherwise.
		before := h.Get("Door", "d").Revision
		if w := h.report("Door", "d", available); len(w) != 1 || w[0].Code != failure.WarningWaiting || w[0].Path != "status.conditions" {
			t.Errorf("warnings %+v of a status that is overruled", w)
		}
		if got := h.Says("Door", "d"); got != "Waiting for Room/r to be ready" || h.Get("Door", "d").Revision != before {
			t.Errorf("the door that waits says %q after a report, at another revision", got)
		}
		h.report("Room", "r", available)
		h.Becomes("Door", "d", "True")
		// What it relies on may turn unready: it relies on it all the same.
		h.report("Room", "r", `{"conditions":[{"type":"Available","status":"False","reason":"TransientError","message":"lost"}]}`)
		if err := h.patch("Door", "d", `{"title":"front"}`, service.MetadataPatch{}); err != nil {
			t.Fatal(err)
		}
		if got := h.Says("Door", "d"); got != "True" {
			t.Errorf("the door says %q after what it relies on turned unready", got)
		}
		h.Create("Room", "mine", `{}`)
		if err := h.Writer.SetControlled(t.Context(), "Room", false); err != nil {
			t.Fatal(err)
		}
		h.Becomes("Room", "mine", "True")
	})
}

func TestDelete_ATransitionIsDatedByWhenTheStatusChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var calls atomic.Int64
		store, err := memory.Open(memory.Config{Clock: func() time.Time { return begin.Add(time.Duration(calls.Add(1)) * time.Millisecond) }})
		if err != nil {
			t.Fatal(err)
		}
		h := openHouse(t, store)
		h.Start()
		when := func() (status string, at any, generation any) {
			st, err := kind.StateOf(h.Get("Door", "d"))
			if err != nil {
				t.Fatal(err)
			}
			c := st.Status()["conditions"].([]any)[0].(map[string]any)
			return c["status"].(string), c["lastTransitionTime"], c["observedGeneration"]
		}
		h.Create("Door", "d", `{"roomRef":"r"}`)
		_, created, _ := when()
		if err := h.patch("Door", "d", `{"roomRef":"s"}`, service.MetadataPatch{}); err != nil {
			t.Fatal(err)
		}
		if status, at, generation := when(); status != "False" || at != created || generation != json.Number("2") {
			t.Errorf("another message: %s since %v at generation %v, want False since %v at 2", status, at, generation, created)
		}
		h.Create("Room", "s", `{}`)
		h.Becomes("Door", "d", "True")
		if status, at, _ := when(); status != "True" || at == created {
			t.Errorf("another status: %s since %v, before since %v", status, at, created)
		}
	})
}

// counted counts what is asked of a store.
type counted struct {
	backend.Store
	applies, writes, ranges atomic.Int64
}

func (c *counted) Apply(ctx context.Context, b backend.Batch) (backend.Result, error) {
	if !b.Actions[0].Key.Internal() {
		c.applies.Add(1)
		for _, a := range b.Actions {
			if a.Op == backend.OpPut {
				c.writes.Add(1)
			}
		}
	}
	return c.Store.Apply(ctx, b)
}

func (c *counted) Range(ctx context.Context, r backend.Range) (backend.Page, error) {
	if r.Referenced != nil {
		c.ranges.Add(1)
	}
	return c.Store.Range(ctx, r)
}

func TestDelete_ManyThatWaitForOneAreReadyByFewCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 2000
		store := &counted{Store: servicetest.OpenMemory(t)}
		h := openHouse(t, store)
		stop := h.Start()
		time.Sleep(5 * time.Second) // of the bubble: the kinds have been scanned then
		for i := range many {
			h.Create("Door", fmt.Sprintf("d%d", i), `{"roomRef":"r"}`)
		}
		store.applies.Store(0)
		store.writes.Store(0)
		store.ranges.Store(0)
		h.Create("Room", "r", `{}`)
		ready := 0
		h.Until("all are ready", func() bool {
			for ; ready < many; ready++ {
				if h.Says("Door", fmt.Sprintf("d%d", ready)) != "True" {
					return false
				}
			}
			return true
		})
		if n := store.writes.Load(); n != many+1 {
			t.Errorf("%d writes, want one for the room and one for each door: %d", n, many+1)
		}
		if n := store.applies.Load(); n > 1+2*(many/backend.MaxWrites+1) {
			t.Errorf("%d batches for %d doors", n, many)
		}
		// The dependents of each door are read when it is created and when it is ready, those of
		// the room page by page.
		if n := store.ranges.Load(); n > 2*many+8 {
			t.Errorf("dependents were read %d times for %d doors", n, many)
		}
		stop()
	})
}

func TestDelete_NoResourceReliesOnOneThatIsGone(t *testing.T) {
	onEachStore(t, func(t *testing.T, h *house) {
		h.Start()
		rounds := 40
		if testing.Short() {
			rounds = 10
		}
		for n := range rounds {
			room := fmt.Sprintf("r%d", n)
			h.Create("Room", room, `{}`)
			var all sync.WaitGroup
			var wrong atomic.Pointer[string]
			for i := range 32 {
				all.Go(func() {
					if i == 8 {
						_, err := h.Writer.Delete(t.Context(), service.DeleteRequest{Identity: servicetest.InDefault("Room", room)})
						if err != nil {
							wrong.Store(new(err.Error()))
						}
						return
					}
					_, err := h.Writer.Create(t.Context(), service.CreateRequest{Identity: servicetest.InDefault("Door", fmt.Sprintf("d%d-%d", n, i)), Spec: json.RawMessage(`{"roomRef":"` + room + `"}`)})
					if err != nil {
						wrong.Store(new(err.Error()))
					}
				})
			}
			all.Wait()
			if text := wrong.Load(); text != nil {
				t.Fatal(*text)
			}
			bound := 0
			key := backend.Key{Kind: "Room", Namespace: "default", Name: room}
			page, err := h.Store.Range(t.Context(), backend.Range{Referenced: &key, BoundOnly: true, Limit: 100})
			if err != nil {
				t.Fatal(err)
			}
			bound = len(page.Resources)
			got := h.Get("Room", room)
			if bound > 0 && (got == nil || !got.Deleting) || bound == 0 && got != nil && !got.Deleting {
				t.Fatalf("%d doors rely on the room, which is %+v", bound, got)
			}
			for _, d := range page.Resources {
				h.Delete("Door", d.Name)
			}
			h.Becomes("Room", room, "none")
		}
	})
}

func TestDelete_TheReconcilerGoesOnWhereTheOneBeforeEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, err := memory.Open(memory.Config{})
		if err != nil {
			t.Fatal(err)
		}
		a, b := openHouse(t, store), openHouse(t, store)
		stop := a.Start()
		a.Create("Door", "d", `{"roomRef":"r"}`)
		a.Create("Room", "other", `{}`)
		a.Create("Door", "held", `{"roomRef":"other"}`)
		stop()
		// Nobody follows now.
		a.Create("Room", "r", `{}`)
		if got := a.Delete("Room", "other"); got != service.Pending {
			t.Fatalf("deletion %s", got)
		}
		a.Delete("Door", "held")
		if got := a.Says("Door", "d"); got != "Waiting for Room/r to be created" {
			t.Fatalf("with nobody following the door says %q", got)
		}
		b.Start()
		b.Becomes("Door", "d", "True")
		b.Becomes("Room", "other", "none")
	})
}

func TestDelete_EverythingIsJudgedAnewOnceTheLogHasForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, err := memory.Open(memory.Config{LogEntries: 8})
		if err != nil {
			t.Fatal(err)
		}
		h := openHouse(t, store)
		stop := h.Start()
		h.Create("Door", "d", `{"roomRef":"r"}`)
		stop()
		h.Create("Room", "r", `{}`)
		for i := range 20 {
			h.Create("Guest", fmt.Sprintf("g%d", i), `{}`)
		}
		h.Start()
		h.Becomes("Door", "d", "True")
	})
}

func TestDelete_TwoReconcilersDoNoHarm(t *testing.T) {
	t.Parallel()
	store, err := memory.Open(memory.Config{})
	if err != nil {
		t.Fatal(err)
	}
	h := openHouse(t, store)
	h.Start()
	openHouse(t, store).Start()
	var seen []string
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	at, err := store.Position(ctx)
	if err != nil {
		t.Fatal(err)
	}
	w, err := store.Watch(ctx, backend.Watch{From: at})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	h.Create("Room", "r", `{}`)
	h.Create("Door", "d", `{"roomRef":"r"}`)
	h.Delete("Room", "r")
	h.Delete("Door", "d")
	for !slices.Contains(seen, "Room/default/r 3") {
		d, err := w.Next(ctx)
		if err != nil {
			t.Fatalf("%v after %v", err, seen)
		}
		for _, e := range d.Events {
			seen = append(seen, fmt.Sprintf("%s %d", e.Resource.Key, e.Type))
		}
	}
	if want := []string{"Room/default/r 1", "Door/default/d 1", "Room/default/r 2", "Door/default/d 3", "Room/default/r 3"}; !slices.Equal(seen, want) {
		t.Errorf("events %v, want %v", seen, want)
	}
}

func TestDelete_WhatExpiresHasNoFinalizers(t *testing.T) {
	kinds := servicetest.Building()
	kinds[0].Expires = true
	h := openHouseOf(t, servicetest.OpenMemory(t), kinds)
	at := service.MetadataPatch{ExpiresAt: service.ExpiresAt(time.Now().Add(time.Hour))}
	h.Create("Room", "r", `{}`)
	if err := h.patch("Room", "r", "", at); err != nil {
		t.Fatal(err)
	}
	if err := h.patch("Room", "r", "", finalizers("example.org/x")); servicetest.CodeOf(err) != failure.CodeValidationFailed || !strings.Contains(err.Error(), "metadata.addFinalizers") {
		t.Errorf("finalizers of what expires: %v", err)
	}
	h.Create("Room", "s", `{}`)
	if err := h.patch("Room", "s", "", finalizers("example.org/x")); err != nil {
		t.Fatal(err)
	}
	if err := h.patch("Room", "s", "", at); servicetest.CodeOf(err) != failure.CodeValidationFailed || !strings.Contains(err.Error(), "metadata.expiresAt") {
		t.Errorf("an expiry of what has finalizers: %v", err)
	}
	both := without("example.org/x")
	both.ExpiresAt = at.ExpiresAt
	if err := h.patch("Room", "s", "", both); err != nil {
		t.Errorf("an expiry in the place of finalizers: %v", err)
	}
}
