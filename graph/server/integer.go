package server

import (
	"strconv"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator"
)

// maxInt64Digits is how many digits an integer has at least that does not fit 64 bits.
const maxInt64Digits = 19

// acceptIntegers returns a rule that also accepts integers beyond 64 bits in the literals of a document, where Float,
// ID and JSON take them: gqlparser parses each as an int64, also to check an object that has one in it. The tree then
// has them as a Float or, for an ID, as a string: the values are the same.
func acceptIntegers(rule validator.RuleFunc) validator.RuleFunc {
	return func(observers *validator.Events, addError validator.AddErrFunc) {
		visited := map[*ast.Value]bool{}
		observers.OnValue(func(_ *validator.Walker, v *ast.Value) {
			asFloats(v, visited)
			if v.Kind == ast.FloatValue && v.Definition != nil && v.Definition.Name == "ID" &&
				!strings.ContainsAny(v.Raw, ".eE") {
				v.Kind = ast.StringValue
			}
		})
		rule(observers, addError)
	}
}

// asFloats makes Floats of the integers beyond 64 bits in a value.
func asFloats(v *ast.Value, visited map[*ast.Value]bool) {
	if visited[v] {
		return
	}
	visited[v] = true
	if v.Kind == ast.IntValue {
		if _, err := strconv.ParseInt(v.Raw, 10, 64); err != nil {
			v.Kind = ast.FloatValue
		}
	}
	for _, child := range v.Children {
		asFloats(child.Value, visited)
	}
}
