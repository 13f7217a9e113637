package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/graph/kinds"
)

const defaultKinds = `type Lamp @resource(plural: "lamps", group: "example.org", version: "v1", scope: GLOBAL) { spec: LampSpec! }
type LampSpec @rule(cel: "self.watts > 3", message: "more than three watts") {
  title: String @constraint(maxLength: 9)
  watts: Int! @default(value: 40) @constraint(min: 1, max: 99) @filterable @sortable
  hours: SafeInt @default(value: 9007199254740991)
  ratio: Float! @default(value: 1.50)
  on: Boolean! @default(value: true)
  label: String! @default(value: "a \"b\" é") @constraint(maxLength: 9) @immutable
  since: Time @default(value: "2026-01-02T03:04:05+01:00")
  colour: Colour! @default(value: DARK_RED) @filterable
  roomRef: String @default(value: "hall") @ref(kind: "Room", inverse: "lamps") @constraint(maxLength: 9)
  part: LampPart
  parts: [LampPart!] @list(type: MAP, keys: ["at"]) @constraint(maxItems: 9)
}
type LampPart { at: Int!, size: Int! @default(value: 7), roomRef: String @default(value: "hall") @ref(kind: "Room", as: "place") @constraint(maxLength: 9) }
enum Colour { DARK_RED @stored(as: "dark-red"), BLUE }
type Room @resource(plural: "rooms", group: "example.org", version: "v1", scope: GLOBAL) { spec: RoomSpec! }
type RoomSpec { title: String @constraint(maxLength: 9) }
`

func TestAFieldReadsAsItsEffectiveValue(t *testing.T) {
	catalogue, err := kinds.Load(&ast.Source{Name: "lamp.graphqls", Input: defaultKinds})
	if err != nil {
		t.Fatal(err)
	}
	g := newGateway(t, catalogue, nil)
	const all = "title watts hours ratio on label since colour roomRef part { at size } parts { at size place { metadata { name } } }"
	const absent = `"title":null,"watts":40,"hours":9007199254740991,"ratio":1.5,"on":true,"label":"a \"b\" é","since":"2026-01-02T02:04:05Z","colour":"DARK_RED","roomRef":"hall",`
	g.wants(`mutation { createRoom(input: {name: "hall", spec: {}}) { room { metadata { name } } } }`, `{"createRoom":{"room":{"metadata":{"name":"hall"}}}}`)
	g.wants(`mutation { createLamp(input: {name: "a", spec: {parts: [{at: 1}, {at: 2, size: 8, roomRef: "attic"}]}}) { lamp { spec { `+all+` } room { metadata { name } } specJSON } } }`,
		`{"createLamp":{"lamp":{"spec":{`+absent+`"part":null,"parts":[{"at":1,"size":7,"place":{"metadata":{"name":"hall"}}},{"at":2,"size":8,"place":null}]},"room":{"metadata":{"name":"hall"}},"specJSON":{"parts":[{"at":1},{"at":2,"roomRef":"attic","size":8}]}}}}`)
	g.wants(`mutation { createLamp(input: {name: "b", spec: {watts: 60, colour: BLUE, on: false, part: {at: 3}}}) { lamp { spec { watts colour on part { at size } } } } }`,
		`{"createLamp":{"lamp":{"spec":{"watts":60,"colour":"BLUE","on":false,"part":{"at":3,"size":7}}}}}`)
	g.wants(`{ lamps(filter: {spec: {watts: {eq: 40}, colour: {eq: DARK_RED}}}) { nodes { metadata { name } } } room(name: "hall") { lamps { nodes { metadata { name } } } } }`,
		`{"lamps":{"nodes":[{"metadata":{"name":"a"}}]},"room":{"lamps":{"nodes":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}]}}}`)
	g.wants(`{ lamps(orderBy: {field: SPEC_WATTS, direction: DESC}) { nodes { spec { watts } } } }`, `{"lamps":{"nodes":[{"spec":{"watts":60}},{"spec":{"watts":40}}]}}`)

	revision := g.revision("Lamp", "a")
	update := func(spec, want string) {
		t.Helper()
		got := g.do(fmt.Sprintf(`mutation { updateLamp(input: {name: "a", expectedRevision: %q, spec: {%s}}) { lamp { metadata { revision generation } specJSON manifest(format: JSON) } } }`, g.revision("Lamp", "a"), spec), nil)
		if text := string(got.Data); len(got.Errors) > 0 || !strings.Contains(text, want) || strings.Contains(text, `\"watts\"`) != strings.Contains(want, "watts") {
			t.Errorf("%s: %s %v, want %s", spec, text, got.Errors, want)
		}
	}
	const parts = `parts: [{at: 1}, {at: 2, size: 8, roomRef: "attic"}]`
	same := `"revision":"` + revision + `","generation":1},"specJSON":{"parts":[{"at":1},{"at":2,"roomRef":"attic","size":8}]}`
	update(parts, same)
	update(parts+`, watts: 40, colour: DARK_RED, label: "a \"b\" é", on: true, ratio: 1.5, since: "2026-01-02T02:04:05Z"`,
		`"generation":1},"specJSON":{"colour":"dark-red","label":"a \"b\" é","on":true,"parts":[{"at":1},{"at":2,"roomRef":"attic","size":8}],"ratio":1.5,"since":"2026-01-02T02:04:05Z","watts":40}`)
	update(`parts: [{at: 1, size: 7, roomRef: "hall"}, {at: 2, size: 8, roomRef: "attic"}]`,
		`"generation":1},"specJSON":{"parts":[{"at":1,"roomRef":"hall","size":7},{"at":2,"roomRef":"attic","size":8}]}`)
	update(`watts: 40, title: "x"`, `"generation":2},"specJSON":{"title":"x","watts":40}`)
	if got := g.do(fmt.Sprintf(`mutation { updateLamp(input: {name: "a", expectedRevision: %q, spec: {label: "other", watts: 2}}) { lamp { id } } }`, g.revision("Lamp", "a")), nil); len(got.Errors) == 0 {
		t.Error("immutability and rules do not see the effective value")
	}
	api, err := catalogue.API()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"LampSpec": "Int!", "LampSpecInput": "Int", "LampSpecPatch": "Int"} {
		if got := api.Types[name].Fields.ForName("watts").Type.String(); got != want {
			t.Errorf("%s.watts: %s", name, got)
		}
	}
}
