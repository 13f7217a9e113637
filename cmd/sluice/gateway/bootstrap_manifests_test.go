package gateway

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/state"
	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/sdl"
)

// racks is a catalogue of kinds that refer to each other.
const racks = `type Room @resource(plural: "rooms", group: "example.org", version: "v1", scope: NAMESPACED) { spec: RoomSpec! }
type RoomSpec { size: Int @constraint(min: 1) }
type Rack @resource(plural: "racks", group: "example.org", version: "v1", scope: NAMESPACED) { spec: RackSpec! }
type RackSpec { roomRef: String @ref(kind: "Room") }
`

// rackManifests has what refers before what it refers to, and one that refers to nothing.
const rackManifests = `apiVersion: example.org/v1
kind: Rack
metadata: {name: a}
spec: {roomRef: r}
---
apiVersion: example.org/v1
kind: Rack
metadata: {name: b}
spec: {roomRef: none}
---
apiVersion: example.org/v1
kind: Room
metadata: {name: r, namespace: default}
spec: {size: 1}
`

// rackFile writes manifests to a file.
func rackFile(t *testing.T, text string) manifestFile {
	t.Helper()
	c, err := sdl.FromTexts(map[string]string{"racks.graphqls": racks}, "kinds")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "racks.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return manifestFile{path: path, catalogue: c}
}

// exportedRacks returns what manifests become: references with whether they hold their targets, and the uid, by key.
func exportedRacks(t *testing.T, m manifestFile) (refs, uids map[string]string) {
	t.Helper()
	raw, err := m.export(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	in, err := state.NewReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	refs = map[string]string{}
	uids = map[string]string{}
	for {
		l, err := in.Next()
		if errors.Is(err, io.EOF) {
			return refs, uids
		}
		if err != nil {
			t.Fatal(err)
		}
		name := l.Resource.Key.String()
		uids[name] = l.Resource.UID
		for _, ref := range l.Resource.Refs {
			refs[name] += ref.Key.String()
		}
		if bytes.Contains(l.Resource.Body, []byte(`"waits"`)) {
			refs[name] += " waits"
		}
	}
}

func TestManifestFile_ReferencesMayLeadToLaterManifests(t *testing.T) {
	m := rackFile(t, rackManifests)
	refs, uids := exportedRacks(t, m)
	want := map[string]string{"Rack/default/a": "Room/default/r", "Rack/default/b": "Room/default/none waits"}
	if d := cmp.Diff(want, refs); d != "" {
		t.Errorf("want -, got +:\n%s", d)
	}
	_, again := exportedRacks(t, m)
	if d := cmp.Diff(uids, again); d != "" || len(uids) != 3 {
		t.Errorf("the same manifests get other uids:\n%s", d)
	}
	_, other := exportedRacks(t, rackFile(t, rackManifests+"# changed\n"))
	if other["Rack/default/a"] == uids["Rack/default/a"] {
		t.Error("other manifests get the same uids")
	}
}

func TestManifestFile_NamesEachManifestThatIsRefused(t *testing.T) {
	text := rackManifests + `---
apiVersion: example.org/v1
kind: Room
metadata: {name: small}
spec:
  size: 0
---
apiVersion: example.org/v2
kind: Room
metadata: {name: old}
---
kind: [
`
	m := rackFile(t, text)
	_, err := m.export(t.Context())
	var refused exit.LinesError
	if !errors.As(err, &refused) || len(refused.Lines) != 4 {
		t.Fatalf("%v", err)
	}
	for i, want := range []string{
		m.path + ":20: Room small: spec.size: must be at least 1",
		m.path + `:22: Room old: kind Room has apiVersion example.org/v1, not "example.org/v2"`,
		m.path + ":26: document 6: manifest: not acceptable as YAML: did not find expected node content",
		"bootstrap: 3 of 6 manifests are refused, so the store is not filled",
	} {
		if !strings.HasPrefix(refused.Lines[i], want) {
			t.Errorf("line %d is %q, want %q", i, refused.Lines[i], want)
		}
	}
}

func TestManifestFile_RefusesOneResourceWithTwoForms(t *testing.T) {
	text := rackManifests + "---\napiVersion: example.org/v1\nkind: Room\nmetadata: {name: r}\nspec: {size: 2}\n"
	_, err := rackFile(t, text).export(t.Context())
	if err == nil || !strings.Contains(err.Error(), "are of the same resource, Room default/r, but differ") {
		t.Errorf("%v", err)
	}
	if _, err := rackFile(t, "# nothing\n").export(t.Context()); err == nil || !strings.Contains(err.Error(), "no document in") {
		t.Errorf("%v", err)
	}
}

func TestManifestFile_RefusesWhatAResourceServiceOwns(t *testing.T) {
	m := rackFile(t, rackManifests)
	for i := range m.catalogue.Stored {
		if m.catalogue.Stored[i].Name == "Room" {
			m.catalogue.Stored[i].Service = "facility"
		}
	}
	_, err := m.export(t.Context())
	if err == nil || !strings.Contains(err.Error(), ":10: Room default/r: its kind is owned by the resource service facility") {
		t.Errorf("%v", err)
	}
}

func TestHoldsManifests_TellsThemFromAnExport(t *testing.T) {
	folder := t.TempDir()
	for text, want := range map[string]bool{
		rackManifests: true, "\xef\xbb\xbfkind: Rack\n": true, `{"kind":"Rack"}`: true,
		strings.Repeat("x", textSample-1) + "é": true,
		"":                                      false, "\x1f\x8b\x08\x00": false, "\x1f": false, "\x9f\x8b\x08\x00": false, "a\x00b": false,
	} {
		path := filepath.Join(folder, "file")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := holdsManifests(path)
		if err != nil || got != want {
			t.Errorf("%.20q: %v %v", text, got, err)
		}
	}
	if got, err := holdsManifests(folder); !got || err != nil {
		t.Errorf("a folder: %v %v", got, err)
	}
	if _, err := holdsManifests(filepath.Join(folder, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

// TestManifestFile_IsNotReviewed: the service that reviews what callers write may not be there when a store is filled.
func TestManifestFile_IsNotReviewed(t *testing.T) {
	m := rackFile(t, rackManifests)
	var err error
	reviewed := strings.Replace(racks, "scope: NAMESPACED", `scope: NAMESPACED, review: "policy"`, 1)
	if m.catalogue, err = sdl.FromTexts(map[string]string{"racks.graphqls": reviewed}, "kinds"); err != nil {
		t.Fatal(err)
	}
	_, uids := exportedRacks(t, m)
	if len(uids) != 3 {
		t.Errorf("it has %v", uids)
	}
	isReviewed := func(k descriptor.Kind) bool { return k.Review == "policy" }
	if !slices.ContainsFunc(m.catalogue.Stored, isReviewed) {
		t.Error("the catalogue was changed")
	}
}
