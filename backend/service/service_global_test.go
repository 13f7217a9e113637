package service_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/bolt"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/redis"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/query"
	"github.com/sluicegw/sluice/backend/service/servicetest"
	"github.com/sluicegw/sluice/internal/redistest"
)

// campus has two GLOBAL kinds, Region and Site, and two NAMESPACED ones: a Site is in a Region,
// a Room is at a Site, and a Door is in a Room. guarded is what a room's reference is.
func campus(guarded bool) []descriptor.Kind {
	parts := servicetest.Building()
	of := func(k descriptor.Kind, name string, scope descriptor.Scope, refs ...descriptor.Reference) descriptor.Kind {
		k.Name, k.Singular, k.Plural, k.Scope, k.References = name, strings.ToLower(name), strings.ToLower(name)+"s", scope, refs
		spec := *k.Spec
		spec.Fields = append([]descriptor.Field(nil), parts[2].Spec.Fields[:1]...)
		for _, r := range refs {
			f := parts[2].Spec.Fields[1]
			f.Name = strings.TrimPrefix(r.Path, "spec.")
			spec.Fields = append(spec.Fields, f)
		}
		k.Spec = &spec
		return k
	}
	return []descriptor.Kind{
		of(parts[0], "Region", descriptor.Global),
		of(parts[0], "Site", descriptor.Global, descriptor.Reference{Path: "spec.regionRef", Kind: "Region", Field: "region", Inverse: "sites", Guarded: true}),
		of(parts[0], "Room", descriptor.Namespaced, descriptor.Reference{Path: "spec.siteRef", Kind: "Site", Field: "site", Inverse: "rooms", Guarded: guarded}),
		of(parts[0], "Door", descriptor.Namespaced, descriptor.Reference{Path: "spec.roomRef", Kind: "Room", Field: "room", Guarded: true}),
	}
}

// floors are namespaces of a campus. In a store of four shards they lie in all of these.
func floors() []string { return []string{"f0", "f1", "f2", "f3", "f4", "f5", "f6", "f7"} }

// openRedis opens a store with the given number of shards on a new server.
func openRedis(t *testing.T, shards int) backend.Store {
	s, err := redis.Open(t.Context(), redis.Config{URL: redistest.Start(t).URL(), Prefix: "t", Shards: shards})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if shards == 4 {
		seen := map[int]bool{}
		for _, floor := range floors() {
			seen[s.Shard(floor)] = true
		}
		if len(seen) != shards {
			t.Fatalf("the floors lie in shards %v", seen)
		}
	}
	return s
}

// storesOfOneShard and storesOfMany open stores by their names.
func storesOfOneShard() map[string]func(t *testing.T) backend.Store {
	return map[string]func(t *testing.T) backend.Store{
		"memory": func(t *testing.T) backend.Store {
			s, err := memory.Open(memory.Config{})
			if err != nil {
				t.Fatal(err)
			}
			return s
		},
		"bolt": func(t *testing.T) backend.Store {
			s, err := bolt.Open(bolt.Config{Path: t.TempDir() + "/store"})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			return s
		},
		"redis": func(t *testing.T) backend.Store { return openRedis(t, 1) },
	}
}

// onCampus runs a test with unguarded references from rooms to sites, on stores of one shard
// and of four.
func onCampus(t *testing.T, test func(t *testing.T, h *house)) {
	t.Helper()
	stores := storesOfOneShard()
	stores["redis of four shards"] = func(t *testing.T) backend.Store { return openRedis(t, 4) }
	onStores(t, stores, func(t *testing.T, store backend.Store) { test(t, openHouseOf(t, store, campus(false))) })
}

// global returns the identity of a GLOBAL resource, onFloor the identity of one in the namespace of a floor.
func global(of, name string) kind.Identity { return kind.Identity{Kind: of, Name: name} }

func onFloor(floor, of, name string) kind.Identity {
	return kind.Identity{Kind: of, Namespace: &floor, Name: name}
}

// put creates a resource.
func (h *house) put(id kind.Identity, spec string) *service.Written {
	h.t.Helper()
	out, err := h.Writer.Create(h.t.Context(), service.CreateRequest{Identity: id, Spec: json.RawMessage(spec)})
	if err != nil {
		h.t.Fatalf("%s %s: %v", id.Kind, id.Name, err)
	}
	return out
}

// remove deletes a resource, and says what came of that.
func (h *house) remove(id kind.Identity) service.Deletion {
	h.t.Helper()
	out, err := h.Writer.Delete(h.t.Context(), service.DeleteRequest{Identity: id})
	if err != nil {
		h.t.Fatalf("%s %s: %v", id.Kind, id.Name, err)
	}
	return out.Deletion
}

// alter patches the spec or the metadata of a resource, at its revision.
func (h *house) alter(id kind.Identity, spec string, meta service.MetadataPatch) {
	h.t.Helper()
	var patch any
	if spec != "" {
		patch = json.RawMessage(spec)
	}
	h.atRevision(id, func(revision string) error {
		_, err := h.Writer.Patch(h.t.Context(), service.PatchRequest{Identity: id, MetadataPatch: meta, ExpectedRevision: revision, Patch: patch})
		return err
	})
}

// tell reports a status, as a controller does.
func (h *house) tell(id kind.Identity, status string) {
	h.t.Helper()
	h.atRevision(id, func(revision string) error {
		_, err := h.Writer.UpdateStatus(h.t.Context(), service.StatusRequest{Identity: id, ExpectedRevision: revision, Status: json.RawMessage(status)})
		return err
	})
}

// atRevision makes a change at the current revision of a resource, again after a conflict.
func (h *house) atRevision(id kind.Identity, change func(revision string) error) {
	h.t.Helper()
	for {
		got, err := h.store.Get(h.t.Context(), keyFor(id))
		if err != nil || got[0] == nil {
			h.t.Fatalf("%s %s: %v, error %v", id.Kind, id.Name, got, err)
		}
		err = change(got[0].Revision.String())
		if err == nil {
			return
		}
		if servicetest.CodeOf(err) != failure.CodeConflict {
			h.t.Fatalf("%s %s: %v", id.Kind, id.Name, err)
		}
	}
}

func keyFor(id kind.Identity) backend.Key {
	key := backend.Key{Kind: id.Kind, Name: id.Name}
	if id.Namespace != nil {
		key.Namespace = *id.Namespace
	}
	return key
}

// settles waits until the conditions of a resource say something.
func (h *house) settles(id kind.Identity, want string) {
	h.t.Helper()
	last := ""
	defer func() {
		if h.t.Failed() {
			h.t.Logf("%s says %q, want %q", keyFor(id), last, want)
		}
	}()
	h.until(keyFor(id).String()+" says "+want, func() bool { last = h.saysIn(keyFor(id)); return last == want })
}

// settleOnAll waits until the rooms of a name say something on all floors.
func (h *house) settleOnAll(room, want string) {
	h.t.Helper()
	for _, floor := range floors() {
		h.settles(onFloor(floor, "Room", room), want)
	}
}

func TestService_ResourcesOfAllNamespacesWaitForAGlobalOne(t *testing.T) {
	onCampus(t, func(t *testing.T, h *house) {
		h.run()
		for _, floor := range floors() {
			if w := h.put(onFloor(floor, "Room", "a"), `{"siteRef":"s"}`).Warnings; len(w) != 1 || w[0].Message != "Waiting for Site/s to be created" {
				t.Errorf("warnings %+v", w)
			}
			h.put(onFloor(floor, "Door", "a"), `{"roomRef":"a"}`)
		}
		h.put(global("Site", "s"), `{"regionRef":"r"}`)
		h.settleOnAll("a", "Waiting for Site/s to be ready")
		h.put(global("Region", "r"), `{}`)
		h.settleOnAll("a", "True")
		for _, floor := range floors() {
			h.settles(onFloor(floor, "Door", "a"), "True")
			if w := h.put(onFloor(floor, "Room", "b"), `{"siteRef":"s"}`).Warnings; len(w) != 0 {
				t.Errorf("a room at a site that is ready: %+v", w)
			}
			if got := h.saysIn(keyFor(onFloor(floor, "Room", "b"))); got != "True" {
				t.Errorf("it says %q at once", got)
			}
		}
		// A site that is being deleted: those who rely on it go on, others wait for its end.
		h.alter(global("Site", "s"), "", finalizers("example.org/hold"))
		if got := h.remove(global("Site", "s")); got != service.Finalizing {
			t.Errorf("the deletion is %s", got)
		}
		for _, floor := range floors() {
			h.put(onFloor(floor, "Room", "c"), `{"siteRef":"s"}`)
			if got := h.saysIn(keyFor(onFloor(floor, "Room", "c"))); got != "Waiting for Site/s to be deleted" {
				t.Errorf("a room at a site that is being deleted says %q", got)
			}
		}
		h.alter(global("Site", "s"), "", without("example.org/hold"))
		h.settleOnAll("c", "Waiting for Site/s to be created")
		h.settleOnAll("a", "True")
		h.put(global("Site", "s"), `{"regionRef":"r"}`)
		h.settleOnAll("c", "True")
		// Nothing holds the site. It holds its region.
		if got := h.remove(global("Region", "r")); got != service.Pending {
			t.Errorf("the deletion of the region is %s", got)
		}
		if got := h.remove(global("Site", "s")); got != service.Deleted {
			t.Errorf("the deletion of the site is %s", got)
		}
		h.settles(global("Region", "r"), "none")
	})
}

func TestService_AResourceMovesFromOneGlobalResourceToAnother(t *testing.T) {
	onCampus(t, func(t *testing.T, h *house) {
		h.run()
		if err := h.Writer.SetControlled(t.Context(), "Site", true); err != nil {
			t.Fatal(err)
		}
		h.put(global("Site", "a"), `{}`)
		for _, floor := range floors() {
			h.put(onFloor(floor, "Room", "m"), `{"siteRef":"a"}`)
		}
		h.settleOnAll("m", "Waiting for Site/a to be ready")
		h.tell(global("Site", "a"), available)
		h.settleOnAll("m", "True")
		for _, floor := range floors() {
			h.alter(onFloor(floor, "Room", "m"), `{"siteRef":"b"}`, service.MetadataPatch{})
		}
		h.settleOnAll("m", "Waiting for Site/b to be created")
		h.put(global("Site", "b"), `{}`)
		h.settleOnAll("m", "Waiting for Site/b to be ready")
		h.tell(global("Site", "b"), available)
		h.settleOnAll("m", "True")
	})
}

func TestService_AGuardedReferenceHoldsAGlobalResourceInAStoreOfOneShard(t *testing.T) {
	onStores(t, storesOfOneShard(), func(t *testing.T, store backend.Store) {
		h := openHouseOf(t, store, campus(true))
		h.run()
		h.put(global("Site", "s"), `{}`)
		for _, floor := range floors() {
			h.put(onFloor(floor, "Room", "a"), `{"siteRef":"s"}`)
		}
		if got := h.remove(global("Site", "s")); got != service.Pending {
			t.Fatalf("the deletion is %s", got)
		}
		if _, err := h.Writer.Create(t.Context(), service.CreateRequest{Identity: onFloor("late", "Room", "a"), Spec: json.RawMessage(`{"siteRef":"s"}`)}); err != nil {
			t.Fatal(err)
		}
		h.settles(onFloor("late", "Room", "a"), "Waiting for Site/s to be deleted")
		for i, floor := range floors() {
			if h.saysIn(keyFor(global("Site", "s"))) == "none" {
				t.Fatalf("the site is gone, and %d rooms are left", len(floors())-i)
			}
			h.remove(onFloor(floor, "Room", "a"))
		}
		h.settles(global("Site", "s"), "none")
		h.settles(onFloor("late", "Room", "a"), "Waiting for Site/s to be created")
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
		store := &between{Store: h.store, name: "late"}
		h = openHouseOf(t, store, campus(false))
		h.run()
		for _, floor := range floors() {
			site := "site-of-" + floor
			spec := fmt.Sprintf(`{"siteRef":%q}`, site)
			h.put(onFloor("f1", "Room", "early-"+floor), spec)
			h.put(onFloor("f2", "Room", "early-"+floor), spec)
			store.do = func() {
				h.put(global("Site", site), `{}`)
				h.settles(onFloor("f1", "Room", "early-"+floor), "True")
				h.settles(onFloor("f2", "Room", "early-"+floor), "True")
			}
			h.put(onFloor(floor, "Room", "late"), spec)
			if store.do != nil {
				t.Fatal("nothing came between")
			}
			h.settles(onFloor(floor, "Room", "late"), "True")
		}
	})
}

// The index of a gateway has a site that is gone.
func TestService_NothingIsBoundToAGlobalResourceByAnOldIndex(t *testing.T) {
	onCampus(t, func(t *testing.T, h *house) {
		h.run()
		h.put(global("Site", "s"), `{}`)
		store := &between{Store: &deafened{Store: h.store, after: "last"}}
		if sharder, ok := h.store.(backend.Sharder); ok {
			store.Store = &shardedDeaf{Store: store.Store, Sharder: sharder}
		}
		g := openHouseOf(t, store, campus(false))
		g.run()
		if err := g.Index().Filled(t.Context()); err != nil {
			t.Fatal(err)
		}
		h.put(global("Region", "last"), `{}`)
		if page, err := g.Reader.List(t.Context(), query.ListRequest{Kind: "Region"}); err != nil || len(page.Edges) != 1 { // the index has heard of it
			t.Fatal(page, err)
		}
		h.remove(global("Site", "s"))
		for _, floor := range floors() {
			if g.Index().Recent(keyFor(global("Site", "s"))) == nil {
				t.Fatal("the index has heard that the site is gone")
			}
			g.put(onFloor(floor, "Room", "a"), `{"siteRef":"s"}`)
			if got := h.saysIn(keyFor(onFloor(floor, "Room", "a"))); got != "Waiting for Site/s to be created" {
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
