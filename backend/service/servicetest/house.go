package servicetest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/catalogue"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// House is a gateway over a store, with the kinds of [Building] or [Campus].
type House struct {
	*service.Service
	T     *testing.T
	Store backend.Store
	// Compiled are the kinds of the gateway.
	Compiled kind.Catalogue
}

// OpenHouse returns a gateway. It does not run until Start is called.
func OpenHouse(t *testing.T, store backend.Store, kinds []descriptor.Kind) *House {
	t.Helper()
	svc, err := service.New(service.Config{Kinds: kinds, Store: store, RetryTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	compiled, err := kind.Compile(kinds)
	if err != nil {
		t.Fatal(err)
	}
	candidate := catalogue.Candidate{Kinds: kinds, AllowBreaking: true}
	if err := (catalogue.Gate{Store: store}).Accept(t.Context(), candidate); err != nil {
		t.Fatal(err)
	}
	return &House{Service: svc, T: t, Store: store, Compiled: compiled}
}

// Start runs the gateway until the test ends or stop is called.
func (h *House) Start() (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(h.T.Context()))
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
			h.T.Error(err)
		}
	}
	h.T.Cleanup(stop)
	return stop
}

// KeyOf returns the key of a resource. The identity of a NAMESPACED resource must have a namespace.
func KeyOf(id kind.Identity) backend.Key {
	key := backend.Key{Kind: id.Kind, Name: id.Name}
	if id.Namespace != nil {
		key.Namespace = *id.Namespace
	}
	return key
}

// InDefault returns the identity of a resource in the default namespace.
func InDefault(of, name string) kind.Identity {
	namespace := "default"
	return kind.Identity{Kind: of, Namespace: &namespace, Name: name}
}

// Put creates a resource.
func (h *House) Put(id kind.Identity, spec string) *service.Written {
	h.T.Helper()
	out, err := h.Writer.Create(h.T.Context(), service.CreateRequest{Identity: id, Spec: json.RawMessage(spec)})
	if err != nil {
		h.T.Fatalf("%s: %v", KeyOf(id), err)
	}
	return out
}

// Create creates a resource in the default namespace.
func (h *House) Create(of, name, spec string) *service.Written {
	h.T.Helper()
	return h.Put(InDefault(of, name), spec)
}

// Remove deletes a resource and returns the progress of the deletion.
func (h *House) Remove(id kind.Identity) service.Deletion {
	h.T.Helper()
	out, err := h.Writer.Delete(h.T.Context(), service.DeleteRequest{Identity: id})
	if err != nil {
		h.T.Fatalf("%s: %v", KeyOf(id), err)
	}
	return out.Deletion
}

// Delete deletes a resource of the default namespace.
func (h *House) Delete(of, name string) service.Deletion {
	h.T.Helper()
	return h.Remove(InDefault(of, name))
}

// Patch changes the spec or the metadata of a resource at its current revision.
func (h *House) Patch(id kind.Identity, spec string, meta service.MetadataPatch) error {
	var patch any
	if spec != "" {
		patch = json.RawMessage(spec)
	}
	return h.AtRevision(id, func(revision string) error {
		_, err := h.Writer.Patch(h.T.Context(), service.PatchRequest{
			Identity: id, MetadataPatch: meta, ExpectedRevision: revision, Patch: patch,
		})
		return err
	})
}

// MustPatch is like Patch, but fails the test if there is an error.
func (h *House) MustPatch(id kind.Identity, spec string, meta service.MetadataPatch) {
	h.T.Helper()
	if err := h.Patch(id, spec, meta); err != nil {
		h.T.Fatalf("%s: %v", KeyOf(id), err)
	}
}

// Report writes a status as a controller does, and returns the warnings.
func (h *House) Report(id kind.Identity, status string) (warnings []failure.Warning) {
	h.T.Helper()
	err := h.AtRevision(id, func(revision string) error {
		out, err := h.Writer.UpdateStatus(h.T.Context(), service.StatusRequest{
			Identity: id, ExpectedRevision: revision, Status: json.RawMessage(status),
		})
		if err == nil {
			warnings = out.Warnings
		}
		return err
	})
	if err != nil {
		h.T.Fatalf("%s: %v", KeyOf(id), err)
	}
	return warnings
}

// AtRevision calls change with the current revision of a resource. It calls change again after each conflict, because
// the gateway may write the conditions of the resource at any time.
func (h *House) AtRevision(id kind.Identity, change func(revision string) error) error {
	h.T.Helper()
	for {
		r := h.GetKey(KeyOf(id))
		if r == nil {
			h.T.Fatalf("%s is not stored", KeyOf(id))
		}
		err := change(r.Revision.String())
		if err == nil || h.T.Context().Err() != nil || CodeOf(err) != failure.CodeConflict {
			return err
		}
	}
}

// GetKey returns a resource from the store; nil if there is none.
func (h *House) GetKey(key backend.Key) *backend.Resource {
	h.T.Helper()
	got, err := h.Store.Get(h.T.Context(), key)
	if err != nil {
		h.T.Fatal(err)
	}
	return got[0]
}

// Get is like GetKey, for a resource in the default namespace.
func (h *House) Get(of, name string) *backend.Resource {
	h.T.Helper()
	return h.GetKey(KeyOf(InDefault(of, name)))
}

// Says is like SaysOf, for a resource in the default namespace.
func (h *House) Says(of, name string) string {
	h.T.Helper()
	return h.SaysOf(KeyOf(InDefault(of, name)))
}

// SaysOf returns "none" if the resource does not exist, "True" if it is available, and otherwise the message of its
// condition Available.
func (h *House) SaysOf(key backend.Key) string {
	h.T.Helper()
	r := h.GetKey(key)
	if r == nil {
		return "none"
	}
	st, err := kind.StateOf(r)
	if err != nil {
		h.T.Fatal(err)
	}
	conditions := map[string]map[string]any{}
	list, _ := st.Status()["conditions"].([]any)
	for _, c := range list {
		m := c.(map[string]any)
		conditions[m["type"].(string)] = m
	}
	available := conditions["Available"]
	progressing := conditions["Progressing"]
	if available == nil || progressing == nil || available["reason"] != progressing["reason"] {
		return fmt.Sprintf("conditions %v", list)
	}
	switch {
	case available["status"] == "True" && progressing["status"] == "False" && available["reason"] == "Success":
		return "True"
	case available["status"] == "False" && progressing["status"] == "True" &&
		available["message"] == progressing["message"] &&
		(available["reason"] == "Progressing" || available["reason"] == "Waiting"):
		return fmt.Sprint(available["message"])
	}
	return fmt.Sprintf("conditions %v", list)
}

// Until waits until condition returns true. It calls condition after each change of the store.
func (h *House) Until(what string, condition func() bool) {
	h.T.Helper()
	at, err := h.Store.Position(h.T.Context())
	if err != nil {
		h.T.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(h.T.Context(), time.Minute)
	defer cancel()
	w, err := h.Store.Watch(ctx, backend.Watch{From: at})
	if err != nil {
		h.T.Fatal(err)
	}
	defer w.Close()
	for !condition() {
		if _, err := w.Next(ctx); err != nil {
			h.T.Fatalf("%s: %v", what, err)
		}
	}
}

// Becomes waits until Says returns want for a resource.
func (h *House) Becomes(of, name, want string) {
	h.T.Helper()
	h.Settles(InDefault(of, name), want)
}

// Settles waits until SaysOf returns want for a resource.
func (h *House) Settles(id kind.Identity, want string) {
	h.T.Helper()
	last := ""
	defer func() {
		if h.T.Failed() {
			h.T.Logf("%s says %q, want %q", KeyOf(id), last, want)
		}
	}()
	h.Until(KeyOf(id).String()+" says "+want, func() bool {
		last = h.SaysOf(KeyOf(id))
		return last == want
	})
}

// OnStores runs a test on each store, in parallel with other tests. It makes t parallel, so t must not be parallel
// already. Time is virtual, except on Redis.
func OnStores(t *testing.T, stores Stores, test func(t *testing.T, store backend.Store)) {
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
