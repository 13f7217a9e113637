package kinds_test

import (
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/graph/kinds"
)

func TestAScalarIsAStringWithAConstraint(t *testing.T) {
	catalogue, err := kinds.Load(
		&ast.Source{Name: "names.graphqls", Input: `
"A name as the cloud has it."
scalar CloudName @constraint(minLength: 1, maxLength: 250, pattern: "^[^,]+$")
`},
		&ast.Source{Name: "thing.graphqls", Input: `
type Thing @resource(plural: "things", group: "example.org", version: "v1", scope: GLOBAL) { spec: Part! status: Status }
type Part {
  name: CloudName!
  short: CloudName @constraint(maxLength: 20)
  all: [CloudName!] @list(type: SET) @constraint(maxItems: 3)
  seen: CloudName @sortable
}
type Status { name: CloudName }
`})
	if err != nil {
		t.Fatal(err)
	}
	spec := catalogue.Kinds[0].Spec
	name, short, all := spec.Field("name"), spec.Field("short"), spec.Field("all")
	if name.Type != "String" || *name.Constraint.MaxLength != 250 || *name.Constraint.MinLength != 1 || name.Constraint.Pattern != "^[^,]+$" {
		t.Errorf("%+v", name)
	}
	if *short.Constraint.MaxLength != 20 || short.Constraint.Pattern == "" {
		t.Errorf("%+v", short)
	}
	if !all.List || *all.Constraint.MaxLength != 250 || *all.Constraint.MaxItems != 3 {
		t.Errorf("%+v", all)
	}
	if got := catalogue.Kinds[0].Status.Field("name").Constraint; *got.MaxLength != 250 || got.Pattern != "" {
		t.Errorf("%+v", got)
	}
	api, err := catalogue.API()
	if err != nil {
		t.Fatal(err)
	}
	if text := kinds.Print(api, nil); strings.Contains(text, "CloudName") || !strings.Contains(text, "seen: StringFilter") {
		t.Error("clients see the scalar")
	}
}
