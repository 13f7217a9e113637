package coercion

import (
	"encoding/json"

	"github.com/vektah/gqlparser/v2/ast"
)

// Literal returns the coerced value of a literal. [Coercer.Document] must have accepted the document, and the variables
// must be coerced. For a variable without a value, an object field is left out, and a list element is null.
func (c Coercer) Literal(t *ast.Type, v *ast.Value, variables map[string]any) any {
	switch {
	case v.Kind == ast.Variable:
		return listOfOne(t, variables[v.Raw])
	case v.Kind == ast.NullValue:
		return nil
	case t.Elem != nil && v.Kind != ast.ListValue:
		return []any{c.Literal(t.Elem, v, variables)}
	case t.Elem != nil:
		return c.elements(t.Elem, v, variables)
	}
	def := c.Schema.Types[t.NamedType]
	if def.Kind != ast.InputObject {
		out, _ := literalScalar(def, v, variables) // Document has checked it
		return out
	}
	out := make(map[string]any, len(v.Children))
	for _, child := range v.Children {
		field := def.Fields.ForName(child.Name)
		if field == nil || !hasValue(child.Value, variables) {
			continue
		}
		out[child.Name] = c.Literal(field.Type, child.Value, variables)
	}
	return out
}

func (c Coercer) elements(elem *ast.Type, v *ast.Value, variables map[string]any) []any {
	out := make([]any, len(v.Children))
	for i, child := range v.Children {
		out[i] = c.Literal(elem, child.Value, variables)
	}
	return out
}

// hasValue reports whether a literal has a value. Only a variable may have none.
func hasValue(v *ast.Value, variables map[string]any) bool {
	if v.Kind != ast.Variable {
		return true
	}
	_, ok := variables[v.Raw]
	return ok
}

// listOfOne returns the value of a variable in a place of type t. If t is a list, a single value becomes a list with
// one element.
func listOfOne(t *ast.Type, value any) any {
	if t.Elem == nil || value == nil {
		return value
	}
	list, ok := value.([]any)
	if !ok {
		return []any{listOfOne(t.Elem, value)}
	}
	return list
}

// literalScalar coerces a literal of a scalar or an enum. A literal of a JSON scalar may contain
// variables.
func literalScalar(def *ast.Definition, v *ast.Value, variables map[string]any) (any, error) {
	tree := literalTree(v, variables)
	switch {
	case tree == nil:
		return nil, nil
	case def.Kind == ast.Scalar:
		return scalar(def.Name, tree)
	case def.Kind != ast.Enum || v.Kind != ast.EnumValue:
		return nil, refuseType(def.Name, tree)
	}
	return tree, nil
}

// literalTree converts a literal of any type to a tree of JSON.
func literalTree(v *ast.Value, variables map[string]any) any {
	switch v.Kind {
	case ast.Variable:
		return variables[v.Raw]
	case ast.IntValue, ast.FloatValue:
		return json.Number(v.Raw)
	case ast.BooleanValue:
		return v.Raw == "true"
	case ast.NullValue:
		return nil
	case ast.ListValue:
		out := make([]any, len(v.Children))
		for i, child := range v.Children {
			out[i] = literalTree(child.Value, variables)
		}
		return out
	case ast.ObjectValue:
		out := make(map[string]any, len(v.Children))
		for _, child := range v.Children {
			if hasValue(child.Value, variables) {
				out[child.Name] = literalTree(child.Value, variables)
			}
		}
		return out
	}
	return v.Raw // a string, a block string or the name of an enum value
}
