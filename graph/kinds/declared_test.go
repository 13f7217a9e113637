package kinds_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/graph/kinds"
)

func TestDeclaredIn_ReadsWhatTheDerivedAPIDoesNotHave(t *testing.T) {
	got, err := kinds.DeclaredIn("shop.graphqls", `
type A @resource(plural: "as", shortNames: ["a", "ay"], subKinds: "One", verbs: [GET, LIST]) { spec: ASpec! }
type B @resource(plural: "bs", shortNames: null, exceptVerbs: [CONTROL]) { spec: ASpec! }
type ASpec { size: Int }
`)
	if err != nil {
		t.Fatal(err)
	}
	if names := slices.Sorted(maps.Keys(got)); !cmp.Equal(names, []string{"A", "B"}) {
		t.Errorf("kinds %v", names)
	}
	a, b := got["A"], got["B"]
	if !cmp.Equal(a.ShortNames, []string{"a", "ay"}) || !cmp.Equal(a.SubKinds, []string{"One"}) || b.ShortNames != nil {
		t.Errorf("%+v %+v", a, b)
	}
	for verb, want := range map[descriptor.Verb][2]bool{
		descriptor.VerbGet: {true, true}, descriptor.VerbReveal: {false, true}, descriptor.VerbControl: {false, false},
	} {
		if a.Offers(verb) != want[0] || b.Offers(verb) != want[1] {
			t.Errorf("%s: %t %t", verb, a.Offers(verb), b.Offers(verb))
		}
	}
	if _, err := kinds.DeclaredIn("shop.graphqls", "type {"); err == nil {
		t.Error("no error for what does not parse")
	}
}
