package coercion_test

import (
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/graph/coercion"
)

// TestVariables_ErrorsNameWhatIsAccepted unless the schema is hidden.
func TestVariables_ErrorsNameWhatIsAccepted(t *testing.T) {
	schema := gqlparser.MustLoadSchema(&ast.Source{Input: `
		type Query { a: Int }
		enum Colour { RED GREEN BLUE }
		enum Digit { ZERO ONE TWO THREE FOUR FIVE SIX SEVEN EIGHT NINE }
		input Paint { colour: Colour, coats: Int, name: String! }`})
	for _, c := range []struct{ typ, value, want, hidden string }{
		{
			"Colour", `"green"`, `Colour is accepted here, not this string; its values are RED, GREEN, BLUE`,
			"Colour is accepted here, not this string",
		},
		{
			"Colour", `"crimson"`, "Colour is accepted here, not this string; its values are RED, GREEN, BLUE",
			"Colour is accepted here, not this string",
		},
		{
			"Colour", `5`, "Colour is accepted here, not this number; its values are RED, GREEN, BLUE",
			"Colour is accepted here, not this number",
		},
		{
			"Digit", `"dozen"`, "Digit is accepted here, not this string; " +
				"its values are ZERO, ONE, TWO, THREE, FOUR, FIVE, SIX, SEVEN and 2 more",
			"Digit is accepted here, not this string",
		},
		{
			"Digit", `"fuor"`, `Digit is accepted here, not this string; did you mean "FOUR"?`,
			"Digit is accepted here, not this string",
		},
		{
			"Paint", `{"color": "RED", "name": "a"}`, `is not a field of Paint; did you mean "colour"?`,
			"is not a field of Paint",
		},
		{
			"Paint", `{"name": "a", "zinc": 1, "gloss": 1}`, "is not a field of Paint; its fields are colour, coats, name",
			"is not a field of Paint",
		},
		{"Paint", `{"": 1, "__typename": "Paint"}`, "is not a field of Paint; its fields are colour, coats, name", "is not a field of Paint"},
	} {
		op := &ast.OperationDefinition{VariableDefinitions: ast.VariableDefinitionList{{Variable: "v", Type: ast.NamedType(c.typ, nil)}}}
		for hidden, want := range map[bool]string{false: c.want, true: c.hidden} {
			given := decoded(t, []byte(`{"v": `+c.value+`}`))
			_, err := coercion.Coercer{Schema: schema, Hidden: hidden}.Variables(op, given)
			if err == nil || err.Message != want {
				t.Errorf("%s, hidden %t: %v, want %s", c.value, hidden, err, want)
			}
		}
	}
}
