package service_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

// bigBuilding is servicetest.Building with a large field on all kinds.
func bigBuilding() []descriptor.Kind {
	kinds := servicetest.Building()
	n := 1 << 20
	for i := range kinds {
		kinds[i].Spec.Fields = append(kinds[i].Spec.Fields, descriptor.Field{Name: "blob", Type: descriptor.TypeString, Constraint: descriptor.Constraint{MaxLength: &n}})
	}
	return kinds
}

// largest is the length of the longest text with which such a resource can be created.
func (h *house) largest(of, name, rest string) int {
	h.T.Helper()
	lo, hi := 1<<19, 1<<20
	for lo+1 < hi {
		mid := (lo + hi) / 2
		_, err := h.Writer.Create(h.T.Context(), service.CreateRequest{Identity: servicetest.InDefault(of, name), DryRun: true, Spec: json.RawMessage(fmt.Sprintf(`{%s"blob":"%s"}`, rest, strings.Repeat("x", mid)))})
		if err == nil {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo - 16 // the texts of times differ in length
}

func blob(n int) string { return `"blob":"` + strings.Repeat("x", n) + `"` }

func TestDelete_ALargeResourceThatIsFinalizingHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	store := servicetest.OpenMemory(t)
	h := openHouseOf(t, store, bigBuilding())
	h.Start()
	n := h.largest("Room", "big", "")
	h.Create("Room", "big", "{"+blob(n-300)+"}")
	if err := h.patch("Room", "big", "", finalizers("example.org/"+strings.Repeat("f", 60))); err != nil {
		t.Fatal(err)
	}
	h.Create("Door", "d", `{"roomRef":"big"}`)
	if got := h.Delete("Room", "big"); got != service.Pending {
		t.Fatal(got)
	}
	h.Delete("Door", "d")
	h.Create("Door", "other", `{"roomRef":"r"}`)
	h.Create("Room", "r", `{}`)
	h.Becomes("Door", "other", "True")
}

func TestDelete_ALargeResourceThatIsReleasedHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	store := servicetest.OpenMemory(t)
	h := openHouseOf(t, store, bigBuilding())
	h.Start()
	if err := h.Writer.SetControlled(t.Context(), "Door", true); err != nil {
		t.Fatal(err)
	}
	n := h.largest("Door", "big", `"roomRef":"r",`)
	h.Create("Door", "big", `{"roomRef":"r",`+blob(n)+"}")
	h.Create("Room", "r", `{}`)
	h.Create("Key", "other", `{"keyRef":"k"}`)
	h.Create("Key", "k", `{}`)
	h.Becomes("Key", "other", "True")
}

func TestDelete_ALargeResourceCanBeDeleted(t *testing.T) {
	t.Parallel()
	store := servicetest.OpenMemory(t)
	h := openHouseOf(t, store, bigBuilding())
	h.Start()
	n := h.largest("Room", "big", "")
	h.Create("Room", "big", "{"+blob(n)+"}")
	h.Create("Door", "d", `{"roomRef":"big"}`)
	out, err := h.Writer.Delete(t.Context(), service.DeleteRequest{Identity: servicetest.InDefault("Room", "big")})
	if err != nil {
		t.Fatal(err)
	}
	if out.Deletion != service.Pending {
		t.Errorf("the deletion is %s", out.Deletion)
	}
	h.Delete("Door", "d")
	h.Becomes("Room", "big", "none")
}

// intruder does something after it was asked for those who rely on a resource.
type intruder struct {
	backend.Store
	mu    sync.Mutex
	after func()
}

func (s *intruder) Range(ctx context.Context, r backend.Range) (backend.Page, error) {
	page, err := s.Store.Range(ctx, r)
	if r.Referenced != nil && r.BoundOnly {
		s.mu.Lock()
		do := s.after
		s.after = nil
		s.mu.Unlock()
		if do != nil {
			do()
		}
	}
	return page, err
}

func TestDelete_NothingIsFinalizingWhileSomebodyReliesOnIt(t *testing.T) {
	store := &intruder{Store: servicetest.OpenMemory(t)}
	h := openHouse(t, store)
	h.Create("Room", "r", `{}`)
	if err := h.patch("Room", "r", "", finalizers("example.org/cloud")); err != nil {
		t.Fatal(err)
	}
	store.after = func() { h.Create("Door", "d", `{"roomRef":"r"}`) }
	got := h.Delete("Room", "r")
	bound := false
	for _, ref := range h.Get("Door", "d").Refs {
		bound = bound || ref.Bound
	}
	if bound && (got == service.Finalizing || strings.Contains(h.Says("Room", "r"), "finalizer")) {
		t.Errorf("the room is %s and says %q although a door relies on it", got, h.Says("Room", "r"))
	}
}

func TestDelete_AReferenceThatBecomesGuardedIsJudgedAnew(t *testing.T) {
	kinds := servicetest.Building()
	n := 253
	kinds[2].Spec.Fields = append(kinds[2].Spec.Fields, descriptor.Field{Name: "nearRef", Type: descriptor.TypeString, Constraint: descriptor.Constraint{MaxLength: &n}})
	kinds[2].References = append(kinds[2].References, descriptor.Reference{Path: "spec.nearRef", Kind: "Room", Field: "near"})
	h := openHouseOf(t, servicetest.OpenMemory(t), kinds)
	h.Start()
	h.Create("Room", "r", `{}`)
	h.Create("Door", "d", `{"nearRef":"r"}`)
	if got := h.Delete("Room", "r"); got != service.Deleted {
		t.Fatal(got)
	}
	if err := h.patch("Door", "d", `{"roomRef":"r"}`, service.MetadataPatch{}); err != nil {
		t.Fatal(err)
	}
	if got := h.Says("Door", "d"); got != "Waiting for Room/r to be created" {
		t.Errorf("the door, whose room is gone, says %q, refs %+v", got, h.Get("Door", "d").Refs)
	}
}

func TestDelete_AReferenceThatACatalogueAddsIsJudged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := servicetest.OpenMemory(t)
		old := servicetest.Building()
		old[2].References = nil
		h := openHouseOf(t, store, old)
		stop := h.Start()
		h.Create("Door", "d", `{"roomRef":"r"}`)
		h.Create("Door", "e", `{"roomRef":"r"}`)
		stop()
		h = openHouse(t, store)
		h.Start()
		h.Becomes("Door", "d", "Waiting for Room/r to be created")
		if err := h.patch("Door", "e", `{"title":"x"}`, service.MetadataPatch{}); err != nil {
			t.Fatal(err)
		}
		if got := h.unsettled("default"); got != "" {
			t.Error(got)
		}
	})
}

// TestDelete_ADeletionGoesOnOnceACatalogueGuardsNoMore: the room is deleted, whether the door that refers to it was
// written by the re-evaluation of all resources under the new catalogue, or by a caller before.
func TestDelete_ADeletionGoesOnOnceACatalogueGuardsNoMore(t *testing.T) {
	for name, write := range map[string]func(h *house) error{
		"re-evaluated": func(*house) error { return nil },
		"patched":      func(h *house) error { return h.patch("Door", "d", `{"title":"x"}`, service.MetadataPatch{}) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := servicetest.OpenMemory(t)
				h := openHouse(t, store)
				stop := h.Start()
				h.Create("Room", "r", `{}`)
				h.Create("Door", "d", `{"roomRef":"r"}`)
				if got := h.Delete("Room", "r"); got != service.Pending {
					t.Fatal(got)
				}
				stop()
				next := servicetest.Building()
				next[2].References[0].Guarded = false
				h = openHouseOf(t, store, next)
				h.Start()
				if err := write(h); err != nil {
					t.Fatal(err)
				}
				h.Becomes("Room", "r", "none")
			})
		})
	}
}

func TestDelete_TheConditionsNameTheFinalizersThatAreLeft(t *testing.T) {
	h := openHouse(t, servicetest.OpenMemory(t))
	h.Start()
	h.Create("Room", "r", `{}`)
	if err := h.patch("Room", "r", "", finalizers("example.org/a", "example.org/b")); err != nil {
		t.Fatal(err)
	}
	h.Delete("Room", "r")
	if err := h.patch("Room", "r", "", without("example.org/a")); err != nil {
		t.Fatal(err)
	}
	h.Becomes("Room", "r", "Waiting for finalizer example.org/b to be removed")
}

func TestDelete_TheFinalizersOfAResourceThatHasGrownTooLargeCanBeRemoved(t *testing.T) {
	t.Parallel()
	h := openHouseOf(t, servicetest.OpenMemory(t), bigBuilding())
	h.Start()
	n := h.largest("Room", "big", "")
	tried := 0
	step := 4
	if testing.Short() {
		step = 16
	}
	for spare := 0; spare < 160; spare += step {
		h.Create("Room", "big", "{"+blob(n-spare)+"}")
		h.Create("Door", "d", `{"roomRef":"big"}`)
		fits := h.patch("Room", "big", "", finalizers("example.org/a", "example.org/b")) == nil
		h.Delete("Room", "big") // what that adds to it may make it larger than callers could
		for _, less := range []string{"example.org/a", "example.org/b"} {
			if !fits {
				break
			}
			tried++
			if err := h.patch("Room", "big", "", without(less)); err != nil {
				t.Fatalf("with %d bytes to spare, to %q: %v", spare, less, err)
			}
		}
		h.Delete("Door", "d")
		h.Becomes("Room", "big", "none")
	}
	if tried == 0 {
		t.Error("finalizers fitted into none")
	}
}
