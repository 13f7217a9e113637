package kinds

import (
	"github.com/vektah/gqlparser/v2/ast"
)

// SummaryField returns the name of the field that counts the resources of a kind by their values.
func SummaryField(plural string) string { return plural + "Summary" }

// summaryField derives the field that counts the resources of a kind.
func summaryField(k *Kind, namespace ast.ArgumentDefinitionList) *ast.FieldDefinition {
	by := "Paths of filterable fields that are no lists, or labels: spec.resource.mtu, labels.team"
	if k.namespaced() {
		by += ", or namespace"
	}
	about := "Keys that resources are counted by: at most 5 elements, and 5 together with conditions. "
	args := append(namespace, argument("filter", k.Name+"Filter", "Which resources are counted; null: all."), argument("by", "[String!]", about+by+". null: none."))
	if k.HasConditions() {
		args = append(args, argument("conditions", "[String!]", "Types of conditions whose status is a key. At most 5 elements. null: none."))
	}
	return readable(SummaryField(k.Plural), "ResourceSummary", "How many resources of kind "+k.Name+" have which values, at one moment.", args...)
}
