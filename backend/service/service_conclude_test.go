package service_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

func TestService_AnotherGatewayConcludesWhatItsWriterDidNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := servicetest.OpenMemory(t)
		dead, alive := openHouse(t, store), openHouse(t, store)
		stop := alive.Start()
		time.Sleep(5 * time.Second) // of the bubble
		dead.Create("Door", "d", `{"roomRef":"r"}`)
		dead.Create("Room", "held", `{}`)
		dead.Create("Door", "holder", `{"roomRef":"held"}`)
		if got := dead.Delete("Room", "held"); got != service.Pending {
			t.Fatal(got)
		}
		time.Sleep(time.Second)
		dead.Create("Room", "r", `{}`) // which the writer does not follow up
		dead.Delete("Door", "holder")
		time.Sleep(450 * time.Millisecond)
		if got := dead.Says("Door", "d"); got != "Waiting for Room/r to be created" {
			t.Errorf("before the writer has had its time the door says %q", got)
		}
		time.Sleep(350 * time.Millisecond)
		if door, room := dead.Says("Door", "d"), dead.Says("Room", "held"); door != "True" || room != "none" {
			t.Errorf("800 ms after the changes the door says %q and the room %q", door, room)
		}
		stop()
	})
}

func TestService_AGatewayConcludesItsOwnWritesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(t, servicetest.OpenMemory(t))
		stop := h.Start()
		time.Sleep(5 * time.Second) // of the bubble
		h.Create("Door", "d", `{"roomRef":"r"}`)
		h.Create("Room", "r", `{}`)
		time.Sleep(10 * time.Millisecond)
		if got := h.Says("Door", "d"); got != "True" {
			t.Errorf("the door says %q", got)
		}
		stop()
	})
}

func TestService_ANewGatewayConcludesWhatHappenedWhileThereWasNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := servicetest.OpenMemory(t)
		h := openHouse(t, store)
		stop := h.Start()
		h.Create("Door", "d", `{"roomRef":"r"}`)
		time.Sleep(5 * time.Second) // of the bubble
		stop()
		h.Create("Room", "r", `{}`)
		time.Sleep(time.Hour)
		next := openHouse(t, store)
		stop = next.Start()
		time.Sleep(100 * time.Millisecond)
		if got := next.Says("Door", "d"); got != "True" {
			t.Errorf("the door says %q", got)
		}
		stop()
	})
}

// puts is a store that counts the references that puts name.
type puts struct {
	backend.Store
	references atomic.Int64
}

func (s *puts) Apply(ctx context.Context, b backend.Batch) (backend.Result, error) {
	for _, a := range b.Actions {
		s.references.Add(int64(len(a.Put.Refs)))
		if a.Op == backend.OpCheck {
			s.references.Add(1)
		}
	}
	return s.Store.Apply(ctx, b)
}

func TestService_AWriteThatLeavesTheSpecTouchesNoReference(t *testing.T) {
	store := &puts{Store: servicetest.OpenMemory(t)}
	h := openHouse(t, store)
	var doors []string
	for i := range 900 {
		doors = append(doors, fmt.Sprintf(`"d%d"`, i))
	}
	h.Create("Key", "k", `{"doorRefs":[`+strings.Join(doors, ",")+`]}`)
	before := h.Get("Key", "k").Refs
	store.references.Store(0)
	label := servicetest.Labelled("a", "b")
	if err := h.patch("Key", "k", "", label); err != nil {
		t.Fatal(err)
	}
	h.report("Key", "k", `{}`)
	if err := h.patch("Key", "k", "", finalizers("example.org/x")); err != nil {
		t.Fatal(err)
	}
	if n := store.references.Load(); n != 0 {
		t.Errorf("%d references were written or checked", n)
	}
	if after := h.Get("Key", "k").Refs; len(before) != 900 || len(after) != 900 {
		t.Errorf("%d references before, %d after", len(before), len(after))
	}
}
