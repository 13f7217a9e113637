package kinds_test

import (
	"maps"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicegw/sluice/graph/kinds"
)

const placed = `type Rack @resource(plural: "racks", group: "example.org", version: "v1", scope: GLOBAL) {
  spec: RackSpec!
}
type RackSpec {
  owner: Owner
  colour: Colour
}
`

func files(team string) fstest.MapFS {
	return fstest.MapFS{
		"rack.graphqls": {Data: []byte(placed)},
		"team.graphqls": {Data: []byte(team)},
		"README.md":     {Data: []byte("# not read")},
	}
}

const team = "enum Colour { RED }\n\ntype Owner {\n  name: String @constraint(maxLength: 9)\n}\n"

func TestPlacesAreTheLinesOfWhatACatalogueSays(t *testing.T) {
	schema, err := kinds.Read(files(team), "kinds")
	if err != nil {
		t.Fatal(err)
	}
	want := kinds.Places{
		Folder: "kinds",
		Fields: map[string]string{
			"Rack": "kinds/rack.graphqls:1", "Rack.spec": "kinds/rack.graphqls:2", "Rack.spec.owner": "kinds/rack.graphqls:5",
			"Rack.spec.colour": "kinds/rack.graphqls:6", "Rack.spec.owner.name": "kinds/team.graphqls:4",
		},
		Types: map[string]string{"Rack.spec": "kinds/rack.graphqls:4", "Rack.spec.owner": "kinds/team.graphqls:3", "Rack.spec.colour": "kinds/team.graphqls:1"},
	}
	got := schema.Places("kinds")
	for _, of := range []map[string]string{got.Fields, got.Types} {
		maps.DeleteFunc(of, func(path, _ string) bool { return strings.HasPrefix(path, "Access") }) // the product's
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAHashIsThatOfTheFilesWhereverTheyLie(t *testing.T) {
	hash := func(team, dir string) string {
		schema, err := kinds.Read(files(team), dir)
		if err != nil {
			t.Fatal(err)
		}
		return schema.Hash
	}
	one := hash(team, "kinds")
	if other := hash(team, "/elsewhere"); len(one) != 16 || one != other {
		t.Errorf("%s in another folder is %s", one, other)
	}
	if other := hash(team+"# a comment\n", "kinds"); one == other {
		t.Errorf("other files are %s, too", other)
	}
}
