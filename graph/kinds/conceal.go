package kinds

import (
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/sluicegw/sluice/backend/descriptor"
)

// Concealed is the message of an error about the value of a write-only field. It replaces messages that would quote the
// value.
const Concealed = "the value of a write-only field does not have its type, or names a key twice"

// concealedAround is the message of an error about a value that contains, or may contain, the value of a write-only
// field.
const concealedAround = "this value, or one in it, does not have its type; it is not shown, since a write-only value may be in it"

// writeOnlyMark is the name of a directive on input fields that set write-only fields. It is internal: it is not part
// of the API and is not printed.
const writeOnlyMark = "writeOnly"

// mark marks the input fields that set write-only fields.
func mark(schema *ast.Schema, of *shown, shape *descriptor.Shape) {
	if shape == nil {
		return
	}
	for i := range shape.Fields {
		f := &shape.Fields[i]
		if of.fields[shape.Name+"."+f.InAPI()] {
			for _, name := range []string{InputType(shape.Name), PatchType(shape.Name)} {
				if def := schema.Types[name]; def != nil {
					if field := def.Fields.ForName(f.InAPI()); field != nil && !IsWriteOnly(field) {
						field.Directives = append(field.Directives, &ast.Directive{Name: writeOnlyMark})
					}
				}
			}
		}
		mark(schema, of, f.Shape)
	}
}

// IsWriteOnly reports whether an input field sets a write-only field.
func IsWriteOnly(field *ast.FieldDefinition) bool {
	return field.Directives.ForName(writeOnlyMark) != nil
}

// Conceal removes the values of write-only fields from validation errors, which quote literals of a wrong type.
func Conceal(schema *ast.Schema, doc *ast.QueryDocument, errs gqlerror.List) {
	c := concealer{
		schema:    schema,
		hidden:    map[gqlerror.Location]bool{},
		around:    map[gqlerror.Location]bool{},
		variables: map[string]bool{},
	}
	for _, op := range doc.Operations {
		c.selections(op.SelectionSet)
	}
	for _, f := range doc.Fragments {
		c.selections(f.SelectionSet)
	}
	for _, op := range doc.Operations {
		for _, v := range op.VariableDefinitions {
			c.value(v.DefaultValue, v.Type, c.variables[v.Variable])
		}
	}
	for _, err := range errs {
		for _, at := range err.Locations {
			switch {
			case c.hidden[at]:
				err.Message = Concealed
			case c.around[at] && quotesValue(err.Message):
				err.Message = concealedAround
			}
		}
	}
}

// quotesValue reports whether a message of gqlparser ends with the value that it is about.
func quotesValue(message string) bool {
	return strings.Contains(message, ", found ") || strings.Contains(message, " value: ")
}

// concealer collects the locations of literals for write-only fields.
type concealer struct {
	schema *ast.Schema
	hidden map[gqlerror.Location]bool
	// around are the locations of values that contain such literals, and of JSON literals.
	around map[gqlerror.Location]bool
	// variables are the names of the variables that are used for write-only fields.
	variables map[string]bool
}

func (c *concealer) selections(set ast.SelectionSet) {
	for _, s := range set {
		switch s := s.(type) {
		case *ast.Field:
			for _, a := range s.Arguments {
				if s.Definition == nil {
					continue // an unknown field, which validation reports
				}
				if def := s.Definition.Arguments.ForName(a.Name); def != nil {
					c.value(a.Value, def.Type, false)
				}
			}
			c.selections(s.SelectionSet)
		case *ast.InlineFragment:
			c.selections(s.SelectionSet)
		}
	}
}

// value collects the locations in a value. It reports whether the value may contain a value of a write-only field.
func (c *concealer) value(v *ast.Value, t *ast.Type, hidden bool) (hides bool) {
	if v == nil {
		return false
	}
	if hidden && v.Kind == ast.Variable {
		c.variables[v.Raw] = true
	}
	if hidden && v.Position != nil {
		c.hidden[gqlerror.Location{Line: v.Position.Line, Column: v.Position.Column}] = true
	}
	def := c.schema.Types[t.Name()]
	hides = hidden || t.Name() == "JSON"
	for _, child := range v.Children {
		of, below := t, hidden
		switch {
		case v.Kind == ast.ListValue && t.Elem != nil:
			of = t.Elem
		case v.Kind == ast.ObjectValue && def != nil && def.Fields.ForName(child.Name) != nil:
			field := def.Fields.ForName(child.Name)
			of, below = field.Type, hidden || IsWriteOnly(field)
		}
		if hidden && child.Position != nil {
			c.hidden[gqlerror.Location{Line: child.Position.Line, Column: child.Position.Column}] = true
		}
		if c.value(child.Value, of, below) {
			hides = true
		}
	}
	if hides && v.Position != nil {
		c.around[gqlerror.Location{Line: v.Position.Line, Column: v.Position.Column}] = true
	}
	return hides
}
