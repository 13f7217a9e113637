package release_test

import (
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2"

	"github.com/sluicegw/sluice/graph/kinds"
)

// grown is shop with more of everything, in another order.
const grown = `
enum Colour { GREEN, BLUE, RED @deprecated(reason: "faded") }

type Shelf @resource(plural: "shelves", group: "example.org", version: "v1", scope: NAMESPACED) {
  spec: ShelfSpec!
}

type ShelfSpec {
  thingRef: String @ref(kind: "Thing", inverse: "shelves") @constraint(maxLength: 253, format: "name")
}

type ThingStatus {
  buyer: String
  sold: Boolean
}

"Another description."
type Thing @resource(plural: "things", group: "example.org", version: "v1", scope: NAMESPACED, shortNames: ["th"]) {
  spec: ThingSpec!
  status: ThingStatus
}

type Part {
  weight: Int
  size: Int!
}

type ThingSpec @rule(cel: "!has(self.weight) || self.weight < 7", message: "heavy") {
  colour: Colour
  weight: Int @filterable
  "What it costs."
  price: Int @constraint(min: -1, max: 1000) @filterable @deprecated(reason: "it is free")
  label: String @constraint(maxLength: 20) @default(value: "none")
  parts: [Part!] @constraint(maxItems: 5) @list(type: ATOMIC)
}
`

func TestView_IsTheReleasedAPIWhateverWasAddedSince(t *testing.T) {
	version := released(t, shop)[0]
	view, missing := version.View(newest(t, grown).API)
	if len(missing) > 0 {
		t.Errorf("missing: %v", missing)
	}
	if got := kinds.PrintBare(view); got != version.API {
		t.Errorf("the view is not what was released:\n%s", got)
	}
	if view.Query.Fields.ForName("__schema") == nil || view.Types["__Type"] == nil || view.Types["String"] == nil {
		t.Error("introspection is missing")
	}
	if view.Types["Thing"].Description != "Another description." {
		t.Errorf("description %q", view.Types["Thing"].Description)
	}
	if of := view.PossibleTypes["Resource"]; len(of) != 3 { // with the two kinds of every catalogue
		t.Errorf("%d types implement Resource", len(of))
	}
	for query, ok := range map[string]bool{
		`{ thing(name: "a") { spec { price label } ... on Resource { kind } } }`: true,
		`{ thing(name: "a") { spec { weight } } }`:                               false,
		`{ shelf(name: "a") { id } }`:                                            false,
		`{ node(id: "a") { ... on Shelf { id } } }`:                              false,
	} {
		if _, err := gqlparser.LoadQueryWithRules(view, query, nil); (err == nil) != ok {
			t.Errorf("%s: %v", query, err)
		}
	}
}

func TestView_SaysWhatIsMissing(t *testing.T) {
	text := strings.ReplaceAll(shop, "  label: String @constraint(maxLength: 20) @default(value: \"none\")\n", "")
	text = strings.Replace(text, "size: Int!", "size: Int", 1)
	text = strings.Replace(text, "RED, BLUE", "RED", 1)
	_, missing := released(t, shop)[0].View(newest(t, text).API)
	said := map[string]bool{}
	for _, m := range missing {
		said[m.What] = m.Line > 1
	}
	for _, want := range []string{
		"ThingSpec.label is gone", "ThingSpecInput.label is gone", "Colour.BLUE is gone",
		"Part.size was Int! and is Int, which is not the same in answers",
	} {
		if !said[want] {
			t.Errorf("it does not say %q with a line: %v", want, missing)
		}
	}
}
