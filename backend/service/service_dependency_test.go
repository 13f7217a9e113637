package service_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

func TestService_AResourceWaitsForWhatItRefersTo(t *testing.T) {
	onEachStore(t, func(t *testing.T, h *house) {
		h.Start()
		if w := h.Create("Door", "d", `{"roomRef":"r"}`).Warnings; len(w) != 1 || w[0].Message != "Waiting for Room/r to be created" || w[0].Path != "spec.roomRef" || w[0].Code != "WAITING" {
			t.Errorf("warnings %+v", w)
		}
		h.Create("Key", "k", `{"doorRefs":["e","d"],"guestRef":"g","keyRef":"k"}`)
		for of, want := range map[string]string{
			"Door d": "Waiting for Room/r to be created",
			"Key k":  "Waiting for Door/d to be ready\nWaiting for Door/e to be created\nWaiting for Guest/g to be created",
		} {
			parts := strings.Fields(of)
			if got := h.Says(parts[0], parts[1]); got != want {
				t.Errorf("%s says %q, want %q", of, got, want)
			}
		}
		h.Create("Guest", "g", `{}`)
		h.Becomes("Key", "k", "Waiting for Door/d to be ready\nWaiting for Door/e to be created")
		h.Create("Room", "r", `{}`)
		h.Becomes("Door", "d", "True")
		h.Becomes("Key", "k", "Waiting for Door/e to be created")
		if w := h.Create("Door", "e", `{"roomRef":"r"}`).Warnings; len(w) != 0 {
			t.Errorf("warnings %+v of what waits for nothing", w)
		}
		if got := h.Says("Door", "e"); got != "True" {
			t.Errorf("a door into a room that is ready says %q at once", got)
		}
		h.Becomes("Key", "k", "True")
	})
}

func TestService_ADeletionWaitsForThoseWhoRelyOnTheResource(t *testing.T) {
	onEachStore(t, func(t *testing.T, h *house) {
		h.Start()
		h.Create("Room", "r", `{}`)
		h.Create("Door", "d", `{"roomRef":"r"}`)
		h.Create("Door", "e", `{"roomRef":"r"}`)
		if got := h.Delete("Room", "r"); got != service.Pending {
			t.Fatalf("the deletion is %s", got)
		}
		if r := h.Get("Room", "r"); r == nil || !r.Deleting {
			t.Fatalf("stored %+v", r)
		}
		h.Create("Door", "late", `{"roomRef":"r"}`)
		if got := h.Says("Door", "late"); got != "Waiting for Room/r to be deleted" {
			t.Errorf("a late door says %q", got)
		}
		if got := h.Delete("Door", "d"); got != service.Deleted {
			t.Errorf("a door's deletion is %s", got)
		}
		if got := h.Delete("Room", "r"); got != service.Pending {
			t.Errorf("the deletion is %s while a door is left", got)
		}
		h.Create("Room", "s", `{}`)
		moved, err := h.Writer.Patch(t.Context(), service.PatchRequest{Identity: servicetest.InDefault("Door", "e"), ExpectedRevision: h.Get("Door", "e").Revision.String(), Patch: json.RawMessage(`{"roomRef":"s"}`)})
		if err != nil || moved == nil {
			t.Fatal(err)
		}
		h.Becomes("Room", "r", "none")
		h.Becomes("Door", "late", "Waiting for Room/r to be created")
		if got := h.Delete("Room", "s"); got != service.Pending {
			t.Errorf("the deletion of the room that a door moved to is %s", got)
		}
	})
}
