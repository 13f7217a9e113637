package service_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/bolt"
	"github.com/sluicegw/sluice/backend/catalogue"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/redis"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/servicetest"
	"github.com/sluicegw/sluice/internal/redistest"
)

// house is a gateway over a store.
type house struct {
	*service.Service
	t     *testing.T
	store backend.Store
	kinds kind.Catalogue
}

// openHouse opens a gateway whose kinds are those of servicetest.Building.
func openHouse(t *testing.T, store backend.Store) *house {
	t.Helper()
	return openHouseOf(t, store, servicetest.Building())
}

func openHouseOf(t *testing.T, store backend.Store, kinds []descriptor.Kind) *house {
	t.Helper()
	svc, err := service.New(service.Config{Kinds: kinds, Store: store, RetryTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	compiled, err := kind.Compile(kinds)
	if err != nil {
		t.Fatal(err)
	}
	if err := (catalogue.Gate{Store: store}).Accept(t.Context(), catalogue.Candidate{Kinds: kinds, AllowBreaking: true}); err != nil {
		t.Fatal(err)
	}
	return &house{Service: svc, t: t, store: store, kinds: compiled}
}

// run runs the gateway until the test ends, or the returned function is called.
func (h *house) run() (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(h.t.Context()))
	done := make(chan error, 1)
	go func() { done <- h.Run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			h.t.Error(err)
		}
	}
	h.t.Cleanup(stop)
	return stop
}

func identity(of, name string) kind.Identity { return kind.Identity{Kind: of, Name: name} }

func (h *house) create(of, name, spec string) *service.Written {
	h.t.Helper()
	out, err := h.Writer.Create(h.t.Context(), service.CreateRequest{Identity: identity(of, name), Spec: json.RawMessage(spec)})
	if err != nil {
		h.t.Fatalf("%s %s: %v", of, name, err)
	}
	return out
}

func (h *house) delete(of, name string) service.Deletion {
	h.t.Helper()
	out, err := h.Writer.Delete(h.t.Context(), service.DeleteRequest{Identity: identity(of, name)})
	if err != nil {
		h.t.Fatalf("%s %s: %v", of, name, err)
	}
	return out.Deletion
}

func (h *house) get(of, name string) *backend.Resource {
	h.t.Helper()
	got, err := h.store.Get(h.t.Context(), backend.Key{Kind: of, Namespace: "default", Name: name})
	if err != nil {
		h.t.Fatal(err)
	}
	return got[0]
}

// says is what the conditions of a resource say: "True", or the message of one that is
// not available; "none" for a resource that is not there.
func (h *house) says(of, name string) string {
	return h.saysIn(backend.Key{Kind: of, Namespace: "default", Name: name})
}

func (h *house) saysIn(key backend.Key) string {
	got, err := h.store.Get(h.t.Context(), key)
	if err != nil {
		h.t.Fatal(err)
	}
	r := got[0]
	if r == nil {
		return "none"
	}
	st, err := kind.StateOf(r)
	if err != nil {
		h.t.Fatal(err)
	}
	conditions := map[string]map[string]any{}
	list, _ := st.Status()["conditions"].([]any)
	for _, c := range list {
		m := c.(map[string]any)
		conditions[m["type"].(string)] = m
	}
	a, p := conditions["Available"], conditions["Progressing"]
	switch {
	case a == nil || p == nil:
		return fmt.Sprintf("conditions %v", list)
	case a["status"] == "True" && p["status"] == "False" && a["reason"] == "Success" && p["reason"] == "Success":
		return "True"
	case a["status"] == "False" && p["status"] == "True" && a["message"] == p["message"] && a["reason"] == p["reason"] && (a["reason"] == "Progressing" || a["reason"] == "Waiting"):
		return fmt.Sprint(a["message"])
	}
	return fmt.Sprintf("conditions %v", list)
}

// until waits for changes of the store until a condition holds.
func (h *house) until(what string, holds func() bool) {
	h.t.Helper()
	at, err := h.store.Position(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(h.t.Context(), time.Minute)
	defer cancel()
	w, err := h.store.Watch(ctx, backend.Watch{From: at})
	if err != nil {
		h.t.Fatal(err)
	}
	defer w.Close()
	for !holds() {
		if _, err := w.Next(ctx); err != nil {
			h.t.Fatalf("%s: %v", what, err)
		}
	}
}

// becomes waits until the conditions of a resource say something.
func (h *house) becomes(of, name, want string) {
	h.t.Helper()
	last := ""
	defer func() {
		if h.t.Failed() {
			h.t.Logf("%s %s says %q", of, name, last)
		}
	}()
	h.until(of+" "+name+" says "+want, func() bool { last = h.says(of, name); return last == want })
}

// onEachStore runs a test on each store, with the kinds of servicetest.Building.
func onEachStore(t *testing.T, test func(t *testing.T, h *house)) {
	t.Helper()
	onEach(t, servicetest.Building(), test)
}

func onEach(t *testing.T, kinds []descriptor.Kind, test func(t *testing.T, h *house)) {
	t.Helper()
	open := map[string]func(t *testing.T) backend.Store{
		"memory": func(t *testing.T) backend.Store {
			return servicetest.OpenMemory(t)
		},
		"bolt": func(t *testing.T) backend.Store {
			s, err := bolt.Open(bolt.Config{Path: t.TempDir() + "/store"})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			return s
		},
		"redis": func(t *testing.T) backend.Store {
			s, err := redis.Open(t.Context(), redis.Config{URL: redistest.Start(t).URL(), Prefix: "t"})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			return s
		},
	}
	onStores(t, open, func(t *testing.T, store backend.Store) { test(t, openHouseOf(t, store, kinds)) })
}

// onStores runs a test on each store: with virtual time, and on Redis, whose time is real, beside other tests. So t must
// not be parallel before.
func onStores(t *testing.T, stores map[string]func(t *testing.T) backend.Store, test func(t *testing.T, store backend.Store)) {
	t.Helper()
	t.Parallel()
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			if strings.HasPrefix(name, "redis") {
				t.Parallel()
				test(t, open(t))
				return
			}
			synctest.Test(t, func(t *testing.T) { test(t, open(t)) })
		})
	}
}

func TestService_AResourceWaitsForWhatItRefersTo(t *testing.T) {
	onEachStore(t, func(t *testing.T, h *house) {
		h.run()
		if w := h.create("Door", "d", `{"roomRef":"r"}`).Warnings; len(w) != 1 || w[0].Message != "Waiting for Room/r to be created" || w[0].Path != "spec.roomRef" || w[0].Code != "WAITING" {
			t.Errorf("warnings %+v", w)
		}
		h.create("Key", "k", `{"doorRefs":["e","d"],"guestRef":"g","keyRef":"k"}`)
		for of, want := range map[string]string{
			"Door d": "Waiting for Room/r to be created",
			"Key k":  "Waiting for Door/d to be ready\nWaiting for Door/e to be created\nWaiting for Guest/g to be created",
		} {
			parts := strings.Fields(of)
			if got := h.says(parts[0], parts[1]); got != want {
				t.Errorf("%s says %q, want %q", of, got, want)
			}
		}
		h.create("Guest", "g", `{}`)
		h.becomes("Key", "k", "Waiting for Door/d to be ready\nWaiting for Door/e to be created")
		h.create("Room", "r", `{}`)
		h.becomes("Door", "d", "True")
		h.becomes("Key", "k", "Waiting for Door/e to be created")
		if w := h.create("Door", "e", `{"roomRef":"r"}`).Warnings; len(w) != 0 {
			t.Errorf("warnings %+v of what waits for nothing", w)
		}
		if got := h.says("Door", "e"); got != "True" {
			t.Errorf("a door into a room that is ready says %q at once", got)
		}
		h.becomes("Key", "k", "True")
	})
}

func TestService_ADeletionWaitsForThoseWhoRelyOnTheResource(t *testing.T) {
	onEachStore(t, func(t *testing.T, h *house) {
		h.run()
		h.create("Room", "r", `{}`)
		h.create("Door", "d", `{"roomRef":"r"}`)
		h.create("Door", "e", `{"roomRef":"r"}`)
		if got := h.delete("Room", "r"); got != service.Pending {
			t.Fatalf("the deletion is %s", got)
		}
		if r := h.get("Room", "r"); r == nil || !r.Deleting {
			t.Fatalf("stored %+v", r)
		}
		h.create("Door", "late", `{"roomRef":"r"}`)
		if got := h.says("Door", "late"); got != "Waiting for Room/r to be deleted" {
			t.Errorf("a late door says %q", got)
		}
		if got := h.delete("Door", "d"); got != service.Deleted {
			t.Errorf("a door's deletion is %s", got)
		}
		if got := h.delete("Room", "r"); got != service.Pending {
			t.Errorf("the deletion is %s while a door is left", got)
		}
		h.create("Room", "s", `{}`)
		moved, err := h.Writer.Patch(t.Context(), service.PatchRequest{Identity: identity("Door", "e"), ExpectedRevision: h.get("Door", "e").Revision.String(), Patch: json.RawMessage(`{"roomRef":"s"}`)})
		if err != nil || moved == nil {
			t.Fatal(err)
		}
		h.becomes("Room", "r", "none")
		h.becomes("Door", "late", "Waiting for Room/r to be created")
		if got := h.delete("Room", "s"); got != service.Pending {
			t.Errorf("the deletion of the room that a door moved to is %s", got)
		}
	})
}
