package kinds

import (
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

// typ reads a type as SDL writes it: "String", "String!", "[String!]!".
func typ(text string) *ast.Type {
	text, nonNull := strings.CutSuffix(text, "!")
	if inner, ok := strings.CutPrefix(text, "["); ok {
		return &ast.Type{Elem: typ(strings.TrimSuffix(inner, "]")), NonNull: nonNull}
	}
	return &ast.Type{NamedType: text, NonNull: nonNull}
}

func field(name, of, about string, args ...*ast.ArgumentDefinition) *ast.FieldDefinition {
	return &ast.FieldDefinition{Name: name, Type: typ(of), Description: about, Arguments: args}
}

// readable is a field that is null only where it could not be read, so that the rest of an
// answer does not go with it.
func readable(name, of, about string, args ...*ast.ArgumentDefinition) *ast.FieldDefinition {
	f := field(name, of, about, args...)
	f.Directives = ast.DirectiveList{{Name: semanticNonNull}}
	return f
}

// semanticNonNull is the directive of such fields.
const semanticNonNull = "semanticNonNull"

func argument(name, of, about string) *ast.ArgumentDefinition {
	return &ast.ArgumentDefinition{Name: name, Type: typ(of), Description: about}
}

// otherwise gives an argument a default.
func otherwise(a *ast.ArgumentDefinition, kind ast.ValueKind, raw string) *ast.ArgumentDefinition {
	a.DefaultValue = &ast.Value{Kind: kind, Raw: raw}
	return a
}

func object(name, about string, fields ...*ast.FieldDefinition) *ast.Definition {
	return &ast.Definition{Kind: ast.Object, Name: name, Description: about, Fields: some(fields)}
}

func input(name, about string, fields ...*ast.FieldDefinition) *ast.Definition {
	return &ast.Definition{Kind: ast.InputObject, Name: name, Description: about, Fields: some(fields)}
}

// some leaves out the fields that are nil: those that a kind does not have.
func some(fields []*ast.FieldDefinition) (out ast.FieldList) {
	for _, f := range fields {
		if f != nil {
			out = append(out, f)
		}
	}
	return out
}

// when is a field that some kinds have.
func when(has bool, f func() *ast.FieldDefinition) *ast.FieldDefinition {
	if !has {
		return nil
	}
	return f()
}
