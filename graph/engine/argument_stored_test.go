package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/graph/kinds"
)

// renamedKinds have fields with other names in the store, one of each sort.
const renamedKinds = `
type Room @resource(plural: "rooms", group: "example.org", version: "v1", scope: NAMESPACED) @column(title: "FLOOR", path: "spec.place.floor") {
  spec: RoomSpec!
  status: RoomStatus
}
type RoomSpec @rule(cel: "self.seats <= 100", message: "a room has at most 100 seats") {
  chairs: Int! @stored(as: "seats") @constraint(min: 1) @sortable
  cloudId: String @stored(as: "id") @immutable @filterable @constraint(maxLength: 9)
  place: Place @stored(as: "at")
  doors: [Door!] @stored(as: "openings") @list(type: MAP, keys: ["side"]) @constraint(maxItems: 4)
  marks: [MapEntry!] @stored(as: "notes") @map @constraint(maxProperties: 3, maxLength: 9, keyMaxLength: 9)
  nextRef: String @stored(as: "next") @ref(kind: "Room", inverse: "before")
  style: Style @stored(as: "look") @default(value: PLAIN) @filterable @deprecated(reason: "none looks")
}
type Place { floor: Int @stored(as: "level") @filterable }
type Door { side: Side! @stored(as: "wall"), width: Int @stored(as: "w") @constraint(max: 3) }
enum Side { NORTH @stored(as: "n") SOUTH }
enum Style { PLAIN @stored(as: "plain") ROUND }
type RoomStatus { cloudId: String @stored(as: "id") @filterable @constraint(maxLength: 9) }
`

func TestAFieldHasItsNameInTheAPIAndAnotherInTheStore(t *testing.T) {
	catalogue, err := kinds.Load(&ast.Source{Name: "room.graphqls", Input: renamedKinds})
	if err != nil {
		t.Fatal(err)
	}
	g := newGateway(t, catalogue, nil)
	const spec = `spec { chairs cloudId place { floor } doors { side width } marks { key value } nextRef style }`
	const shown = `{"chairs":4,"cloudId":"c1","place":{"floor":2},"doors":[{"side":"NORTH","width":1}],"marks":[{"key":"k","value":"v"}],"nextRef":"b","style":"ROUND"}`
	const stored = `{"at":{"level":2},"id":"c1","look":"ROUND","next":"b","notes":{"k":"v"},"openings":[{"w":1,"wall":"n"}],"seats":4}`
	g.wants(`mutation { createRoom(input: {name: "a", spec: {chairs: 4, cloudId: "c1", place: {floor: 2}, doors: [{side: NORTH, width: 1}], marks: [{key: "k", value: "v"}], nextRef: "b", style: ROUND}}) { room { `+spec+` specJSON } warnings { code field message } } }`,
		`{"createRoom":{"room":{"spec":`+shown+`,"specJSON":`+stored+`},"warnings":[{"code":"DEPRECATED","field":"input.spec.style","message":"spec.style is deprecated: none looks"},{"code":"WAITING","field":"input.spec.nextRef","message":"Waiting for Room/b to be created"}]}}`)
	g.wants(`mutation { createRoom(input: {name: "b", spec: {chairs: 9}}) { room { before { nodes { metadata { name } } } } } }`, `{"createRoom":{"room":{"before":{"nodes":[{"metadata":{"name":"a"}}]}}}}`)
	g.wants(`{ room(name: "a") { next { metadata { name } } dependencies { nodes { path } } } b: room(name: "b") { dependents { nodes { path } } } }`,
		`{"room":{"next":{"metadata":{"name":"b"}},"dependencies":{"nodes":[{"path":"spec.nextRef"}]}},"b":{"dependents":{"nodes":[{"path":"spec.nextRef"}]}}}`)

	// A patch merges what it names, a status is written, and the manifest has the names of the store.
	g.wants(fmt.Sprintf(`mutation { patchRoom(input: {name: "a", expectedRevision: %q, spec: {chairs: 5, place: {floor: 3}, marks: [{key: "m", value: "x"}], style: null}}) { room { specJSON manifest } } }`, g.revision("Room", "a")),
		`{"patchRoom":{"room":{"specJSON":{"at":{"level":3},"id":"c1","next":"b","notes":{"k":"v","m":"x"},"openings":[{"w":1,"wall":"n"}],"seats":5},"manifest":"apiVersion: example.org/v1\nkind: Room\nmetadata:\n  name: a\n  namespace: default\nspec:\n  at:\n    level: 3\n  id: c1\n  next: b\n  notes:\n    k: v\n    m: x\n  openings:\n  - w: 1\n    wall: \"n\"\n  seats: 5\n"}}}`)
	g.wants(fmt.Sprintf(`mutation { updateRoomStatus(input: {name: "a", expectedRevision: %q, status: {cloudId: "up"}}) { room { statusJSON status { cloudId } } } }`, g.revision("Room", "a")),
		`{"updateRoomStatus":{"room":{"statusJSON":{"id":"up"},"status":{"cloudId":"up"}}}}`)
	const manifest = "apiVersion: example.org/v1\nkind: Room\nmetadata: {name: a}\nspec: {seats: 5, id: c1, at: {level: 3}, openings: [{wall: n, w: 1}], notes: {k: v, m: x}, next: b}\n"
	apply := func(manifest string) string {
		return `mutation { applyManifest(input: {manifest: "` + strings.NewReplacer("\n", `\n`).Replace(manifest) + `"}) { outcome } }`
	}
	g.wants(apply(manifest), `{"applyManifest":{"outcome":"UNCHANGED"}}`)

	for filter, want := range map[string]string{
		`{spec: {cloudId: {eq: "c1"}}}`: "a", `{spec: {place: {floor: {gte: 3}}}}`: "a", `{spec: {style: {eq: PLAIN}}}`: "a b",
		`{spec: {nextRef: {isNull: true}}}`: "b", `{status: {cloudId: {startsWith: "u"}}}`: "a", `{not: {spec: {chairs: {lt: 9}}}}`: "b",
	} {
		names := ""
		for _, name := range strings.Fields(want) {
			names += `,{"metadata":{"name":"` + name + `"}}`
		}
		g.wants(`{ rooms(filter: `+filter+`) { nodes { metadata { name } } } }`, `{"rooms":{"nodes":[`+strings.TrimPrefix(names, ",")+`]}}`)
	}
	g.wants(`{ rooms(orderBy: [{field: SPEC_CHAIRS, direction: DESC}]) { nodes { metadata { name } } } }`, `{"rooms":{"nodes":[{"metadata":{"name":"b"}},{"metadata":{"name":"a"}}]}}`)

	g.wants(`{ roomsSummary(by: ["spec.place.floor", "spec.cloudId"]) { groups { keys { path value } count } } }`,
		`{"roomsSummary":{"groups":[{"keys":[{"path":"spec.place.floor","value":null},{"path":"spec.cloudId","value":null}],"count":1},{"keys":[{"path":"spec.place.floor","value":"3"},{"path":"spec.cloudId","value":"c1"}],"count":1}]}}`)

	// What is wrong is told in the caller's names: the API's, or within a manifest those of manifests.
	for write, want := range map[string]string{
		`{ roomsSummary(by: ["spec.chairs", "spec.id"]) { groups { count } } }`:                                                                                               `by[1]: "spec.id" is no filterable field`,
		`{ roomsSummary(by: ["spec.place"]) { groups { count } } }`:                                                                                                           `by[0]: "spec.place" is no filterable field`,
		`mutation { createRoom(input: {name: "c", spec: {chairs: 0}}) { dryRun } }`:                                                                                           `input.spec.chairs: spec.chairs: must be at least 1`,
		`mutation { createRoom(input: {name: "c", spec: {chairs: 1, doors: [{side: SOUTH, width: 9}]}}) { dryRun } }`:                                                         `input.spec.doors[0].width: spec.doors[0].width: must be at most 3`,
		`mutation { createRoom(input: {name: "c", spec: {chairs: 1, doors: [{side: SOUTH}, {side: SOUTH}]}}) { dryRun } }`:                                                    `input.spec.doors[1]`,
		fmt.Sprintf(`mutation { patchRoom(input: {name: "a", expectedRevision: %q, spec: {cloudId: "c2"}}) { dryRun } }`, g.revision("Room", "a")):                            `input.spec.cloudId: spec.cloudId: `,
		fmt.Sprintf(`mutation { patchRoom(input: {name: "a", expectedRevision: %q, spec: {marks: [{key: "m", value: "0123456789"}]}}) { dryRun } }`, g.revision("Room", "a")): `input.spec.marks[0].value: spec.marks.m: must have at most 9 characters`,
		`{ rooms(filter: {or: [{spec: {cloudId: {}}}]}) { totalCount } }`:                                                                                                     `filter.or[0].spec.cloudId: filter.or[0].spec.cloudId has no operator`,
		`{ roomsSummary(by: ["spec.cloudId"], filter: {not: {spec: {place: {floor: {}}}}}) { groups { count } } }`:                                                            `filter.not.spec.place.floor: filter.not.spec.place.floor has no operator`,
		fmt.Sprintf(`mutation { patchResource(input: {id: %q, expectedRevision: %q, specJSON: {seats: 0}}) { dryRun } }`,
			kind.GlobalID(backend.Key{Kind: "Room", Namespace: "default", Name: "a"}), g.revision("Room", "a")): `input.specJSON.seats: spec.seats: must be at least 1`,
		fmt.Sprintf(`mutation { updateRoomStatus(input: {name: "a", expectedRevision: %q, status: {cloudId: "0123456789"}}) { dryRun } }`, g.revision("Room", "a")): `input.status.cloudId: status.cloudId: must have at most 9 characters`,
		apply(strings.Replace(manifest, "seats: 5", "seats: 0", 1)):            `input.manifest.spec.seats: spec.seats: must be at least 1`,
		apply(strings.Replace(manifest, "seats: 5", "seats: 5, chairs: 5", 1)): `input.manifest.spec.chairs: spec.chairs: is not a field`,
	} {
		if got := refusal(t, g.do(write, nil)); !strings.HasPrefix(got, want) {
			t.Errorf("%s\ngot  %s\nwant %s", write, got, want)
		}
	}

	// So are warnings.
	g.wants(`mutation { applyManifest(input: {dryRun: true, manifest: "`+strings.NewReplacer("\n", `\n`, "next: b", "next: none, look: plain").Replace(manifest)+`"}) { warnings { code field message } } }`,
		`{"applyManifest":{"warnings":[{"code":"DEPRECATED","field":"input.manifest.spec.look","message":"spec.look is deprecated: none looks"},{"code":"WAITING","field":"input.manifest.spec.next","message":"Waiting for Room/none to be created"}]}}`)
	g.wants(fmt.Sprintf(`mutation { patchRoom(input: {name: "a", expectedRevision: %q, dryRun: true, spec: {place: {floor: null}}}) { warnings { code field message } } }`, g.revision("Room", "a")),
		`{"patchRoom":{"warnings":[{"code":"CLEARED","field":"input.spec.place.floor","message":"spec.place.floor was cleared: the patch has null for it"}]}}`)

	// Programs that know no kind get both names.
	got := g.do(`{ kinds { fields { path name storedPath keys } filterableFields { path } columns { path } references { path } } }`, nil)
	for _, part := range []string{
		`{"path":"spec.chairs","name":"chairs","storedPath":"spec.seats","keys":[]}`, `{"path":"spec.place.floor","name":"floor","storedPath":"spec.at.level","keys":[]}`,
		`{"path":"spec.doors","name":"doors","storedPath":"spec.openings","keys":["side"]}`, `"columns":[{"path":"spec.place.floor"}],"references":[{"path":"spec.nextRef"}]`,
		`{"path":"status.cloudId"}`,
	} {
		if !strings.Contains(string(got.Data), part) {
			t.Errorf("no %s in %s", part, got.Data)
		}
	}
}
