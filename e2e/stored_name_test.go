package e2e_test

import (
	"path/filepath"
	"strings"
	"testing"
)

const renamedKinds = `
type Room @resource(plural: "rooms", group: "example.org", version: "v1", scope: NAMESPACED) @column(title: "FLOOR", path: "spec.place.floor") {
  spec: RoomSpec!
  status: RoomStatus
}
type RoomSpec {
  "How many can sit down."
  chairs: Int @stored(as: "seats") @constraint(max: 9) @sortable
  place: Place @stored(as: "at")
}
type Place @constraint(maxProperties: 1) { floor: Int @stored(as: "level") @filterable, hall: String @constraint(maxLength: 9) }
type RoomStatus { cloudId: String @stored(as: "id"), parts: [Part!] }
type Part { size: Int @stored(as: "w"), marks: [MapEntry!] @stored(as: "notes") @map }
`

// People write manifests, so the command line has the names that these have.
func TestTheCommandLineHasTheNamesOfManifests(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "room.graphqls"), renamedKinds)
	g := start(t, "", "--catalogue", dir)
	const manifest = "apiVersion: example.org/v1\nkind: Room\nmetadata:\n  name: a\nspec:\n  at:\n    level: 2\n  seats: 4\n"
	g.cli(manifest, "apply", "-f", "-")
	editor(t, `sed -i '/^status:/,$d' "$1"; echo 'status: {id: "7", parts: [{w: 1, notes: {k: v}}]}' >> "$1"`)
	for _, c := range []struct{ line, says string }{
		{"get rooms", "FLOOR"}, {"get rooms --filter spec.at.level=2", "a      2"}, {"get rooms --filter spec.seats>4", ""},
		{"explain room.spec.seats", "How many can sit down."}, {"explain room.spec.at", "level"}, {"edit room a --subresource=status", "UPDATED"},
		{"get room a -o custom-columns=ID:.status.id,W:.status.parts[0].w,N:.status.parts[0].notes.k --no-headers", "7   1   v"},
		{"patch room a -p {\"spec\":{\"seats\":5}}", "UPDATED"}, {"get room a -o manifest", "seats: 5"},
		{"get rooms --sort-by .spec.seats -o name", "room/a"},
	} {
		if out, errOut, code := g.cli("", strings.Fields(c.line)...); code != 0 || !strings.Contains(out, c.says) {
			t.Errorf("%s: exit %d\n%s%s", c.line, code, out, errOut)
		}
	}
	if _, errOut, code := g.cli(strings.Replace(manifest, "seats: 4", "seats: 40", 1), "apply", "-f", "-"); code != 1 || !strings.Contains(errOut, "spec.seats: must be at most 9") {
		t.Errorf("exit %d\n%s", code, errOut)
	}
	if _, errOut, code := g.cli(strings.Replace(manifest, "level: 2", "level: 2\n    hall: x", 1), "apply", "-f", "-"); code != 1 || !strings.Contains(errOut, "spec.at: must have at most 1 of the fields level, hall") {
		t.Errorf("exit %d\n%s", code, errOut)
	}
	got := g.post(`mutation { createRoom(input: {name: "b", spec: {place: {floor: 2, hall: "x"}}}) { room { id } } }`, nil)
	if len(got.Errors) != 1 || got.Errors[0].Message != "spec.place: must have at most 1 of the fields floor, hall" {
		t.Errorf("%+v", got)
	}
}
