package kinds_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/graph/kinds"
)

func TestAKindOffersWhatItHasSomethingForAndDoesNotExcept(t *testing.T) {
	const parts = `
type Part { size: Int }
type Status { conditions: [Condition!] }
`
	all := "GET LIST WATCH CREATE UPDATE PATCH UPSERT STATUS FINALIZE CONTROL DELETE"
	for arguments, want := range map[string]string{
		"":                                      all,
		", exceptVerbs: [DELETE]":               strings.Replace(all, " DELETE", "", 1),
		", exceptVerbs: [PATCH, REVEAL]":        strings.Replace(strings.Replace(all, " PATCH", "", 1), " FINALIZE", "", 1),
		", exceptVerbs: [FINALIZE, CONTROL]":    strings.Replace(all, " FINALIZE CONTROL", "", 1),
		", verbs: [FINALIZE, PATCH, GET, LIST]": "FINALIZE PATCH GET LIST",
		`, service: "crm"`:                      "GET LIST WATCH CREATE UPDATE PATCH UPSERT DELETE",
	} {
		catalogue, err := kinds.Load(&ast.Source{Name: "thing.graphqls", Input: `type Thing @resource(plural: "things", group: "example.org", version: "v1", scope: GLOBAL` + arguments + `) { spec: Part! status: Status }` + parts})
		if err != nil {
			t.Errorf("%s: %v", arguments, err)
			continue
		}
		var got []string
		for _, v := range catalogue.Kinds[0].Verbs {
			got = append(got, string(v))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", arguments, got, want)
		}
		api, err := catalogue.API()
		if err != nil {
			t.Fatal(err)
		}
		has := func(v descriptor.Verb) bool { return slices.Contains(got, string(v)) }
		if deletes := api.Mutation.Fields.ForName("deleteThing") != nil; deletes != has(descriptor.VerbDelete) {
			t.Errorf("%s: deleteThing is there: %v", arguments, deletes)
		}
		if patch := api.Types["PatchThingInput"]; patch != nil && (patch.Fields.ForName("addFinalizers") != nil) != has(descriptor.VerbFinalize) {
			t.Errorf("%s: addFinalizers is there: %v", arguments, !has(descriptor.VerbFinalize))
		}
	}
}
