package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/bolt"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/graph/server"
)

// The versions of two majors. In the second one a field, two types and a value have other names, a field, a value and a
// kind are gone, a field is required with a default, a maximum is lower, and there is more.
const (
	major1 = `
type Thing @resource(plural: "things", group: "example.org", version: "v1", scope: NAMESPACED) {
  spec: ThingSpec!
  status: ThingStatus
}
type ThingSpec @rule(cel: "!has(self.price) || self.price != 13", message: "price: thirteen is unlucky") {
  price: Int @sortable @constraint(max: 100)
  colour: Colour @sortable
  weight: Int
  note: String @constraint(maxLength: 20) @filterable
  box: Box
  parts: [Part!] @constraint(maxItems: 5) @list(type: ATOMIC)
  slots: [Slot!] @constraint(maxItems: 5) @list(type: MAP, keys: ["name"])
  shelfRef: String @ref(kind: "Shelf", inverse: "things", guarded: true) @constraint(maxLength: 253)
  rackRef: String @ref(kind: "Rack", guarded: true) @constraint(maxLength: 253)
}
` + boxType + `type Part { size: Int! }
type Slot { name: String! @constraint(maxLength: 20)
  size: Int }
type ThingStatus { sold: Boolean }
enum Colour { RED, BLUE, GREEN }
type Shelf @resource(plural: "shelves", group: "example.org", version: "v1", scope: NAMESPACED) { spec: ShelfSpec! }
type ShelfSpec { width: Int }
type Rack @resource(plural: "racks", group: "example.org", version: "v1", scope: NAMESPACED) { spec: RackSpec! }
type RackSpec { height: Int
  parts: [Part!] @constraint(maxItems: 5) @list(type: ATOMIC) }
type Safe @resource(plural: "safes", group: "example.org", version: "v1", scope: NAMESPACED, sensitive: true) { spec: SafeSpec! }
type SafeSpec { owner: String @constraint(maxLength: 20)
  code: String @writeOnly @constraint(maxLength: 20)
  pin: String @writeOnly @constraint(maxLength: 20) }
`
	major2 = `
type Thing @resource(plural: "things", group: "example.org", version: "v2", scope: NAMESPACED) {
  spec: ThingSpecification!
  status: ThingStatus
}
type ThingSpecification @rule(cel: "!has(self.price) || self.price != 7", message: "cost: seven is taken") {
  hiddenText: String @constraint(maxLength: 20) @filterable
  cost: Int @sortable @constraint(max: 50) @stored(as: "price")
  shade: Shade @sortable @stored(as: "colour")
  weight: Int! @default(value: 3)
  note: Int @stored(as: "noteNumber")
  case: Case @stored(as: "box")
  parts: [Part!] @constraint(maxItems: 5) @list(type: ATOMIC)
  slots: [Slot!] @constraint(maxItems: 5) @list(type: MAP, keys: ["name"])
  shelfRef: String @ref(kind: "Shelf", inverse: "content", guarded: true) @constraint(maxLength: 253)
  hiddenRef: String @ref(kind: "Hidden", inverse: "hiddenThings") @constraint(maxLength: 253)
}
type Case { hiddenLabel: String @constraint(maxLength: 20)
  label: String @constraint(maxLength: 20) }
type Part { hiddenSize: Int
  size: Int! }
type Slot { hiddenSize: Int
  name: String! @constraint(maxLength: 20)
  size: Int }
type ThingStatus { hiddenState: String @constraint(maxLength: 20)
  sold: Boolean }
enum Shade { HIDDENSHADE, CRIMSON @stored(as: "RED"), BLUE }
type Shelf @resource(plural: "shelves", group: "example.org", version: "v1", scope: NAMESPACED) { spec: ShelfSpec! }
type ShelfSpec { width: Int }
type Hidden @resource(plural: "hiddens", group: "example.org", version: "v1", scope: NAMESPACED, shortNames: ["hid"]) { spec: HiddenSpec! }
type HiddenSpec { thingRef: String @ref(kind: "Thing", inverse: "hiddens", guarded: true) @constraint(maxLength: 253) }
type Safe @resource(plural: "safes", group: "example.org", version: "v1", scope: NAMESPACED, sensitive: true) { spec: SafeSpec! }
type SafeSpec { holder: String @constraint(maxLength: 20) @stored(as: "owner")
  hiddenCode: String @writeOnly @constraint(maxLength: 20)
  code: String @writeOnly @constraint(maxLength: 20) }
`
)

// boxType is a type that v1.0 does not have.
const boxType = `type Box { label: String @constraint(maxLength: 20)
  code: String @constraint(maxLength: 20) }
`

// sizes has a field more in each shelf.
func sizes(sdl string, fields ...string) string {
	for _, field := range fields {
		sdl = strings.Replace(sdl, "type ShelfSpec { ", "type ShelfSpec { "+field+": Int\n", 1)
	}
	return sdl
}

// majors are the versions of the fixture.
func majors() map[string]string {
	first := strings.Replace(major1, "  box: Box\n", "", 1)
	first = strings.Replace(first, boxType, "", 1)
	return map[string]string{
		"v1.0": first, "v1.1": major1,
		"v2.0": major2, "v2.1": sizes(major2, "one"), "v2.2": sizes(major2, "one", "two"),
		"v2.3": sizes(major2, "one", "two"), "v2.4": sizes(major2, "one", "two"), "v2.5": sizes(major2, "one", "two"),
		"v2.6": sizes(major2, "one", "two"), "v2.7": sizes(major2, "one", "two"), "v2.8": sizes(major2, "one", "two"),
		"v2.9": sizes(major2, "one", "two"), "v2.10": sizes(major2, "one", "two", "ten"),
	}
}

// openMajors serves both majors, to everybody.
func openMajors(t *testing.T, store backend.Store) *changing {
	t.Helper()
	c := openChangingOn(t, store, server.Config{})
	c.serveMajors()
	return c
}

// serveMajors replaces what is served by both majors.
func (c *changing) serveMajors() {
	c.Helper()
	catalogue, svc := c.withFolders(sizes(major2, "one", "two", "ten", "unreleased"), "", majors())
	g, err := c.server.Prepare(catalogue)
	if err != nil {
		c.Fatal(err)
	}
	c.server.Replace(g)
	c.run(svc)
}

func openMemory(t *testing.T) backend.Store {
	t.Helper()
	store, err := memory.Open(memory.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

// onEachStore runs a test on each of the stores.
func onEachStore(t *testing.T, test func(t *testing.T, open func(t *testing.T) backend.Store)) {
	t.Run("memory", func(t *testing.T) { test(t, openMemory) })
	t.Run("bolt", func(t *testing.T) {
		test(t, func(t *testing.T) backend.Store {
			store, err := bolt.Open(bolt.Config{Path: t.TempDir() + "/store"})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = store.Close() })
			return store
		})
	})
}

// answered asks a path, and returns the answer, which must have no errors.
func (c *changing) answered(path, query string) string {
	c.Helper()
	got := c.ask(c.Handler, path, query).Body.String()
	if strings.Contains(got, `"errors"`) {
		c.Fatalf("%s %s\n%s", path, query, got)
	}
	return got
}

// thingRevision returns the revision of a thing.
func (c *changing) thingRevision(path, name string) string {
	c.Helper()
	var out struct {
		Data struct {
			Thing struct{ Metadata struct{ Revision string } }
		}
	}
	got := c.answered(path, fmt.Sprintf(`{ thing(name: %q) { metadata { revision } } }`, name))
	if err := json.Unmarshal([]byte(got), &out); err != nil || out.Data.Thing.Metadata.Revision == "" {
		c.Fatalf("%s %v", got, err)
	}
	return out.Data.Thing.Metadata.Revision
}

// majors1and2 are the versions of the fixture without later ones of the second major.
func majors1and2() map[string]string {
	all := majors()
	return map[string]string{"v1.0": all["v1.0"], "v1.1": all["v1.1"], "v2.0": all["v2.0"]}
}
