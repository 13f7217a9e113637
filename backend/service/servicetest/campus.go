package servicetest

import (
	"slices"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// Campus returns two GLOBAL kinds, Region and Site, and two NAMESPACED kinds, Room and Door. A Site is in a Region, a
// Room at a Site, and a Door in a Room. If guarded is set, the reference of a Room is guarded.
func Campus(guarded bool) []descriptor.Kind {
	parts := Building()
	of := func(name string, scope descriptor.Scope, refs ...descriptor.Reference) descriptor.Kind {
		k := parts[0]
		k.Name = name
		k.Singular = strings.ToLower(name)
		k.Plural = k.Singular + "s"
		k.Scope = scope
		k.References = refs
		spec := *k.Spec
		spec.Fields = slices.Clone(parts[2].Spec.Fields[:1])
		for _, r := range refs {
			f := parts[2].Spec.Fields[1]
			f.Name = strings.TrimPrefix(r.Path, "spec.")
			spec.Fields = append(spec.Fields, f)
		}
		k.Spec = &spec
		return k
	}
	inRegion := descriptor.Reference{
		Path: "spec.regionRef", Kind: "Region", Field: "region", Inverse: "sites", Guarded: true,
	}
	atSite := descriptor.Reference{
		Path: "spec.siteRef", Kind: "Site", Field: "site", Inverse: "rooms", Guarded: guarded,
	}
	inRoom := descriptor.Reference{Path: "spec.roomRef", Kind: "Room", Field: "room", Guarded: true}
	return []descriptor.Kind{
		of("Region", descriptor.Global),
		of("Site", descriptor.Global, inRegion),
		of("Room", descriptor.Namespaced, atSite),
		of("Door", descriptor.Namespaced, inRoom),
	}
}

// Floors returns namespaces for a campus. In a store with four shards, each shard has some of them.
func Floors() []string { return []string{"f0", "f1", "f2", "f3", "f4", "f5", "f6", "f7"} }

// Global returns the identity of a GLOBAL resource.
func Global(of, name string) kind.Identity { return kind.Identity{Kind: of, Name: name} }

// OnFloor returns the identity of a resource in the namespace of a floor.
func OnFloor(floor, of, name string) kind.Identity {
	return kind.Identity{Kind: of, Namespace: &floor, Name: name}
}

// OnCampus runs a test on stores with one shard and on a store with four shards, with the kinds of [Campus] and
// unguarded references.
func OnCampus(t *testing.T, test func(t *testing.T, h *House)) {
	t.Helper()
	stores := EachStore()
	stores["redis of four shards"] = func(t *testing.T) backend.Store { return OpenRedis(t, 4) }
	OnStores(t, stores, func(t *testing.T, store backend.Store) { test(t, OpenHouse(t, store, Campus(false))) })
}

// SettleOnAll waits until SaysOf returns want for the room called room on every floor.
func (h *House) SettleOnAll(room, want string) {
	h.T.Helper()
	for _, floor := range Floors() {
		h.Settles(OnFloor(floor, "Room", room), want)
	}
}
