package service_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/query"
	"github.com/sluicegw/sluice/backend/service/servicetest"
	"github.com/sluicegw/sluice/internal/redistest"
)

// unguarded is servicetest.Building without the guard of doors, without their reference, and without
// doors and keys.
func unguarded() map[string][]descriptor.Kind {
	guard, reference := servicetest.Building(), servicetest.Building()
	guard[2].References[0].Guarded = false
	reference[2].References = nil
	return map[string][]descriptor.Kind{"no guard": guard, "no reference": reference, "no kind": servicetest.Building()[:2]}
}

// blockers are those that hold a resource, as "Kind/name state path".
func (h *house) blockers(of, name string) (out []string) {
	h.T.Helper()
	pages, errs := h.Reader.Dependencies(h.T.Context(), []query.DependencyRequest{{Relation: query.BlockedBy, Key: backend.Key{Kind: of, Namespace: "default", Name: name}}})
	if errs[0] != nil {
		h.T.Fatal(errs[0])
	}
	for _, d := range pages[0].Dependencies {
		out = append(out, fmt.Sprint(d.Key.Kind, "/", d.Key.Name, " ", d.State, " ", d.Path))
	}
	if n, err := pages[0].TotalCount(h.T.Context()); err != nil || n != len(out) {
		h.T.Errorf("%d are counted of %q, %v", n, out, err)
	}
	return out
}

// bound reports whether a door is bound to its room.
func (h *house) bound(door string) error {
	if refs := h.Get("Door", door).Refs; len(refs) != 1 || !refs[0].Bound {
		return fmt.Errorf("%+v", refs)
	}
	return nil
}

func TestDelete_WhatIsBoundHoldsItsTargetWhateverCatalogueTheDeleterHas(t *testing.T) {
	t.Parallel()
	for name, kinds := range unguarded() {
		t.Run(name, func(t *testing.T) {
			onEach(t, kinds, func(t *testing.T, old *house) {
				recent := openHouse(t, old.Store) // its catalogue is the newest
				inOrder(old, recent)
				recent.Create("Room", "r", `{}`)
				recent.Create("Door", "d", `{"roomRef":"r"}`)
				if got := old.Delete("Room", "r"); got != service.Pending {
					t.Fatalf("the older gateway says that the deletion is %s", got)
				}
				want := "Door/d BOUND spec.roomRef"
				if got := recent.blockers("Room", "r"); !slices.Equal(got, []string{want}) {
					t.Errorf("%q hold it, want %s", got, want)
				}
				want = "Door/d BOUND "
				if got := old.blockers("Room", "r"); !slices.Equal(got, []string{want}) {
					t.Errorf("by the older catalogue %q hold it, want %s", got, want)
				}
				recent.Delete("Door", "d")
				recent.Becomes("Room", "r", "none")
			})
		})
	}
}

func TestDelete_ADeletionThatWaitsEndsOnceACatalogueLetsGoOfIt(t *testing.T) {
	t.Parallel()
	for name, kinds := range unguarded() {
		t.Run(name, func(t *testing.T) {
			onEachStore(t, func(t *testing.T, h *house) {
				stop := h.Start()
				h.Create("Room", "r", `{}`)
				h.Create("Door", "d", `{"roomRef":"r"}`)
				if got := h.Delete("Room", "r"); got != service.Pending {
					t.Fatal(got)
				}
				stop()
				next := openHouseOf(t, h.Store, kinds)
				next.Start()
				if name != "no kind" {
					next.Becomes("Room", "r", "none")
					return
				}
				// The resources of a kind that is gone are kept, and so is what they hold.
				next.Create("Room", "done", `{}`)
				if got := next.blockers("Room", "r"); !slices.Equal(got, []string{"Door/d BOUND "}) {
					t.Errorf("%q hold the room", got)
				}
			})
		})
	}
}

func TestDelete_AGuardThatComesBackBindsAnew(t *testing.T) {
	onEachStore(t, func(t *testing.T, h *house) {
		stop := h.Start()
		h.Create("Room", "r", `{}`)
		for i := range 3 {
			h.Create("Door", fmt.Sprint("d", i), `{"roomRef":"r"}`)
		}
		for _, kinds := range [][]descriptor.Kind{unguarded()["no guard"], servicetest.Building(), unguarded()["no reference"], servicetest.Building()} {
			stop()
			next := openHouseOf(t, h.Store, kinds)
			stop = next.Start()
			redistest.Await(t, "the references are those of the catalogue", func() error {
				for i := range 3 {
					refs := next.Get("Door", fmt.Sprint("d", i)).Refs
					declared := kinds[2].References
					if len(refs) != len(declared) || len(refs) > 0 && refs[0].Bound != declared[0].Guarded {
						return fmt.Errorf("door %d refers to %+v", i, refs)
					}
				}
				return nil
			})
		}
	})
}

// late is a store on which another gateway does something right before the first put of a
// door whose revision is given.
type late struct {
	backend.Store
	before atomic.Pointer[func()]
}

func (s *late) Apply(ctx context.Context, b backend.Batch) (backend.Result, error) {
	if a := b.Actions[0]; a.Key.Kind == "Door" && a.Op == backend.OpPut {
		if do := s.before.Swap(nil); do != nil {
			(*do)()
		}
	}
	return s.Store.Apply(ctx, b)
}

func TestDelete_APutThatWasPreparedBeforeAPassDoesNotUndoIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := servicetest.OpenMemory(t)
		slow := &late{Store: store}
		old := openHouseOf(t, slow, unguarded()["no guard"])
		old.Create("Room", "r", `{}`)
		old.Create("Door", "d", `{"roomRef":"r"}`)
		pass := func() {
			recent := openHouse(t, store)
			recent.Start()
			redistest.Await(t, "the door is bound", func() error { return recent.bound("d") })
		}
		slow.before.Store(&pass)
		if err := old.patch("Door", "d", `{"title":"x"}`, service.MetadataPatch{}); err != nil {
			t.Fatal(err)
		}
		if err := old.bound("d"); err != nil {
			t.Errorf("after the put of the older gateway the door refers to %v", err)
		}
		if got := old.Delete("Room", "r"); got != service.Pending {
			t.Errorf("the room is %s", got)
		}
	})
}

// failing is a store that fails after so many rebinds.
type failing struct {
	backend.Store
	left atomic.Int64
}

func (s *failing) Apply(ctx context.Context, b backend.Batch) (backend.Result, error) {
	if b.Actions[0].Op == backend.OpRebind && s.left.Add(-1) < 0 {
		return backend.Result{}, backend.ErrUnavailable
	}
	return s.Store.Apply(ctx, b)
}

func TestDelete_APassGoesOnWhereAnotherGatewayEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := servicetest.OpenMemory(t)
		before := openHouseOf(t, store, unguarded()["no guard"])
		before.Create("Room", "r", `{}`)
		const doors = 1200 // three pages
		for i := range doors {
			before.Create("Door", fmt.Sprint("d", i), `{"roomRef":"r"}`)
		}
		count := func() (n int) {
			room := backend.Key{Kind: "Room", Namespace: "default", Name: "r"}
			page, err := store.Range(t.Context(), backend.Range{Referenced: &room, BoundOnly: true, Count: true})
			if err != nil {
				t.Fatal(err)
			}
			return page.Count
		}
		dying := &failing{Store: store}
		dying.left.Store(10) // batches, of more than a page
		stop := openHouse(t, dying).Start()
		redistest.Await(t, "the pass has begun", func() error {
			if dying.left.Load() >= 0 {
				return errors.New("it has not")
			}
			return nil
		})
		stop()
		if n := count(); n == 0 || n == doors {
			t.Fatalf("%d doors are bound", n)
		}
		openHouse(t, store).Start()
		redistest.Await(t, "all doors are bound", func() error {
			if n := count(); n != doors {
				return fmt.Errorf("%d are", n)
			}
			return nil
		})
	})
}

func TestDelete_AnOlderGatewayBindsToNothingThatIsNotThere(t *testing.T) {
	store := servicetest.OpenMemory(t)
	n := 253
	both, one := servicetest.Building(), servicetest.Building() // a second reference to rooms, which the newer catalogue drops
	for _, kinds := range [][]descriptor.Kind{both, one} {
		kinds[2].Spec.Fields = append(kinds[2].Spec.Fields, descriptor.Field{Name: "nearRef", Type: descriptor.TypeString, Constraint: descriptor.Constraint{MaxLength: &n}})
	}
	both[2].References = append(both[2].References, descriptor.Reference{Path: "spec.nearRef", Kind: "Room", Field: "near", Guarded: true})
	old, recent := openHouseOf(t, store, both), openHouseOf(t, store, one)
	inOrder(old, recent)
	recent.Create("Door", "d", `{"nearRef":"r"}`) // which is no reference to it
	if err := old.patch("Door", "d", `{"nearRef":null,"roomRef":"r"}`, service.MetadataPatch{}); err != nil {
		t.Fatal(err)
	}
	recent.Becomes("Door", "d", "Waiting for Room/r to be created")
}

func TestDelete_AKindThatComesBackIsScanned(t *testing.T) {
	onEachStore(t, func(t *testing.T, h *house) {
		stop := h.Start()
		h.Create("Door", "d", `{"roomRef":"r"}`)
		record := backend.Key{Kind: "_reconcile", Name: "shard-0"}
		saved := func(what string, has func(body string) bool) {
			redistest.Await(t, what, func() error {
				got, err := h.Store.Get(t.Context(), record)
				if err != nil || got[0] == nil || !has(string(got[0].Body)) {
					return fmt.Errorf("%v, %v", got, err)
				}
				return nil
			})
		}
		saved("doors are scanned", func(body string) bool { return strings.Contains(body, `"Door":`) })
		stop()
		without := openHouseOf(t, h.Store, unguarded()["no kind"])
		stop = without.Start()
		without.Create("Room", "r", `{}`)
		saved("doors are forgotten", func(body string) bool { return !strings.Contains(body, `"Door":`) })
		stop()
		again := openHouse(t, h.Store)
		again.Start()
		again.Becomes("Door", "d", "True")
	})
}

func TestDelete_AsManyReferencesAsThereMayBeAreAllReliedOn(t *testing.T) {
	store := servicetest.OpenMemory(t)
	h := openHouse(t, store)
	h.Start()
	var names []string
	for i := range 900 {
		h.Create("Door", fmt.Sprint("d", i), `{}`)
		names = append(names, fmt.Sprintf(`"d%d"`, i))
	}
	h.Create("Key", "k", `{"doorRefs":[`+strings.Join(names, ",")+`]}`)
	h.Becomes("Key", "k", "True")
	for _, ref := range h.Get("Key", "k").Refs {
		if !ref.Bound {
			t.Fatalf("%+v is not bound", ref)
		}
	}
}
