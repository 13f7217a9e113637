package release_test

import (
	"testing"

	"github.com/sluicegw/sluice/graph/kinds"
	"github.com/sluicegw/sluice/graph/release"
	"github.com/sluicegw/sluice/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// newest reads a catalogue of one file.
func newest(t *testing.T, text string) release.Newest {
	t.Helper()
	schema, err := kinds.ReadTexts(map[string]string{"shop.graphqls": text}, "shop")
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	api, err := schema.API()
	if err != nil {
		t.Fatal(err)
	}
	return release.Newest{Schema: schema, API: api, Dir: "shop"}
}

// released returns versions of catalogues of one file, v1.0 and so on.
func released(t *testing.T, texts ...string) []*release.Version {
	t.Helper()
	files := map[string]string{}
	for minor, text := range texts {
		folder := release.Number{Major: 1, Minor: minor}.String()
		files[folder+"/shop.graphqls"] = text
		files[folder+"/"+release.APIFile] = kinds.PrintBare(newest(t, text).API)
	}
	out, err := release.Read(files, "shop")
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// folders are the texts of versions of catalogues of one file, by their numbers.
func folders(t *testing.T, texts map[string]string) map[string]string {
	t.Helper()
	files := map[string]string{}
	for number, text := range texts {
		files[number+"/shop.graphqls"] = text
		files[number+"/"+release.APIFile] = kinds.PrintBare(newest(t, text).API)
	}
	return files
}

// ofNumbers returns versions of catalogues of one file.
func ofNumbers(t *testing.T, texts map[string]string) []*release.Version {
	t.Helper()
	out, err := release.Read(folders(t, texts), "shop")
	if err != nil {
		t.Fatal(err)
	}
	return out
}

const shop = `
"A thing in a shop."
type Thing @resource(plural: "things", shortNames: ["th"], group: "example.org", version: "v1", scope: NAMESPACED) {
  spec: ThingSpec!
  status: ThingStatus
}

type ThingSpec {
  "What it costs."
  price: Int @constraint(min: 0, max: 100) @filterable
  label: String @constraint(maxLength: 20) @default(value: "none")
  colour: Colour @deprecated(reason: "use label")
  parts: [Part!] @constraint(maxItems: 5) @list(type: ATOMIC)
}

type Part {
  size: Int!
}

enum Colour { RED, BLUE }

type ThingStatus {
  sold: Boolean
}
`
