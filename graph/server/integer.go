package server

import (
	"strconv"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator"
)

// maxInt64Digits is a number of digits. Integers with fewer digits always fit into 64 bits.
const maxInt64Digits = 19

// acceptIntegers returns a validation rule that accepts integer literals of more than 64 bits where the type is Float,
// ID or JSON. gqlparser refuses them, because it parses every integer literal as an int64. The rule replaces such a
// literal by a Float literal or, for an ID, by a string with the same digits.
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

// asFloats replaces the integers of more than 64 bits in a value by Float literals.
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
