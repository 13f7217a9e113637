package release_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/graph/kinds"
	"github.com/sluicegw/sluice/graph/release"
)

// next is the catalogue of a major after shop: names of types, fields and values are others, and a field is gone.
const next = `
type Thing @resource(plural: "goods", group: "example.org", version: "v2", scope: NAMESPACED) {
  spec: ThingSpecification!
  status: ThingStatus
}

type ThingSpecification {
  cost: Int @constraint(min: 0, max: 50) @sortable @stored(as: "price")
  shade: Shade! @default(value: CRIMSON) @stored(as: "colour")
  label: String! @constraint(maxLength: 20) @default(value: "none")
  parts: [Piece!] @constraint(maxItems: 5) @list(type: ATOMIC)
}

type Piece {
  size: Int!
}

enum Shade { CRIMSON @stored(as: "RED") }

type ThingStatus {
  sold: Boolean
}
`

func TestCheckMajor_AllowsWhatBothCanBeServedWith(t *testing.T) {
	if err := release.CheckMajor(released(t, shop), newest(t, next)); err != nil {
		t.Error(err)
	}
	if err := release.Check(ofNumbers(t, map[string]string{"v1.0": shop, "v2.0": next}), newest(t, next)); err != nil {
		t.Error(err)
	}
	err := release.Check(ofNumbers(t, map[string]string{"v1.0": shop, "v2.0": next}), newest(t, shop))
	if err == nil || !strings.Contains(err.Error(), "clients of v2.0 break: ") || strings.Contains(err.Error(), "clients of v1.0") {
		t.Error(err)
	}
}

func TestCheckMajor_FindingsAreAtTheAuthorsLine(t *testing.T) {
	for name, c := range map[string]struct{ old, new, line, what string }{
		"another type":       {"cost: Int @constraint(min: 0, max: 50) @sortable", "cost: String @constraint(maxLength: 9)", "8", "Thing.spec.price was Int and is String"},
		"a list":             {"label: String! @constraint(maxLength: 20) @default(value: \"none\")", "label: [String!] @constraint(maxLength: 20, maxItems: 2) @list(type: SET)", "10", "Thing.spec.label was String and is a list of String"},
		"new and required":   {"  parts:", "  weight: Int!\n  parts:", "11", "Thing.spec.weight is new and required"},
		"required":           {"shade: Shade! @default(value: CRIMSON)", "shade: Shade!", "9", "Thing.spec.colour is required"},
		"not required":       {"  size: Int!", "  size: Int", "15", "Thing.spec.parts.size is not required any more"},
		"gone and required":  {"  size: Int!", "  width: Int", "11", "Thing.spec.parts.size is gone, and clients of v1.0 rely on its value"},
		"default of a price": {"@sortable @stored(as: \"price\")", "@sortable @stored(as: \"price\") @default(value: 3)", "8", "Thing.spec.price has not the default that it has in v1.0"},
		"another scope":      {"scope: NAMESPACED", "scope: GLOBAL", "2", "Thing was NAMESPACED and is GLOBAL"},
		"a service":          {"scope: NAMESPACED", "scope: NAMESPACED, service: \"crm\"", "2", "Thing is owned by service \"crm\" and was stored by the gateway itself"},
		"write-only":         {"label: String! @constraint(maxLength: 20) @default(value: \"none\")", "label: String @constraint(maxLength: 20) @writeOnly", "10", "Thing.spec.label is @writeOnly in one of them alone"},
	} {
		err := release.CheckMajor(released(t, shop), newest(t, strings.Replace(next, c.old, c.new, 1)))
		findings, _ := errors.AsType[kinds.Findings](err)
		want := "shop/shop.graphqls:" + c.line + ": v2 cannot be served beside v1.0: " + c.what
		if len(findings) == 0 || !strings.HasPrefix(findings[0].String(), want) {
			t.Errorf("%s: wanted %s, got\n%v", name, want, err)
		}
		if len(findings) > 1 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCheckMajor_FindsGuardsInACircle(t *testing.T) {
	const was = `
type Door @resource(plural: "doors", group: "example.org", version: "v1", scope: NAMESPACED) { spec: DoorSpec! }
type DoorSpec { keyRef: String @ref(kind: "Key", guarded: true) @constraint(maxLength: 253) }
type Key @resource(plural: "keys", group: "example.org", version: "v1", scope: NAMESPACED) { spec: KeySpec! }
type KeySpec { size: Int }
`
	const is = `
type Door @resource(plural: "doors", group: "example.org", version: "v1", scope: NAMESPACED) { spec: DoorSpec! }
type DoorSpec { size: Int }
type Key @resource(plural: "keys", group: "example.org", version: "v1", scope: NAMESPACED) { spec: KeySpec! }
type KeySpec { doorRef: String @ref(kind: "Door", guarded: true) @constraint(maxLength: 253) }
`
	err := release.CheckMajor(released(t, was), newest(t, is))
	if err == nil || !strings.Contains(err.Error(), "shop/shop.graphqls:2: v2 cannot be served beside v1.0: Door.spec.keyRef is gone and still guarded for clients of v1.0, and the guards of both lead from kind Door back to itself") {
		t.Error(err)
	}
	if err := release.CheckMajor(released(t, was), newest(t, strings.Replace(is, ", guarded: true", "", 1))); err != nil {
		t.Error(err)
	}
}
