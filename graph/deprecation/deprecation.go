// Package deprecation finds the deprecated fields, arguments and enum values that an operation uses. Uses in the text
// of a document are found once for each document, uses in the values of variables once for each request.
//
// They are named by schema coordinates (https://spec.graphql.org/draft/#sec-Schema-Coordinates): Type.field for fields
// of types and inputs, Type.field(argument:), and Enum.VALUE.
package deprecation

import (
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
)

// directive is the directive that marks deprecated parts.
const directive = "deprecated"

// Schema has the deprecated parts of a schema. It never changes. A nil Schema has none.
type Schema struct {
	schema *ast.Schema
	// The coordinates of the deprecated parts.
	fields    map[*ast.FieldDefinition]string
	arguments map[*ast.ArgumentDefinition]string
	values    map[*ast.EnumValueDefinition]string
	// inputs are the names of the input types and enums whose values may have deprecated parts.
	inputs map[string]bool
}

// New returns the deprecated parts of a schema; nil if there are none.
func New(schema *ast.Schema) *Schema {
	s := &Schema{
		schema:    schema,
		fields:    map[*ast.FieldDefinition]string{},
		arguments: map[*ast.ArgumentDefinition]string{},
		values:    map[*ast.EnumValueDefinition]string{},
		inputs:    map[string]bool{},
	}
	for _, def := range schema.Types {
		s.add(def)
	}
	if len(s.fields)+len(s.arguments)+len(s.values) == 0 {
		return nil
	}
	for s.spread() {
		continue
	}
	return s
}

// add adds the deprecated parts of one type.
func (s *Schema) add(def *ast.Definition) {
	for _, f := range def.Fields {
		coordinate := def.Name + "." + f.Name
		if f.Directives.ForName(directive) != nil {
			s.fields[f] = coordinate
			s.inputs[def.Name] = s.inputs[def.Name] || def.Kind == ast.InputObject
		}
		for _, a := range f.Arguments {
			if a.Directives.ForName(directive) != nil {
				s.arguments[a] = coordinate + "(" + a.Name + ":)"
			}
		}
	}
	for _, v := range def.EnumValues {
		if v.Directives.ForName(directive) != nil {
			s.values[v] = def.Name + "." + v.Name
			s.inputs[def.Name] = true
		}
	}
}

// spread adds to inputs the input types that have a field of a type in inputs. It reports whether it has added any.
func (s *Schema) spread() (more bool) {
	for _, def := range s.schema.Types {
		if def.Kind != ast.InputObject || s.inputs[def.Name] {
			continue
		}
		if slices.ContainsFunc(def.Fields, func(f *ast.FieldDefinition) bool { return s.inputs[f.Type.Name()] }) {
			s.inputs[def.Name] = true
			more = true
		}
	}
	return more
}

// Document has the deprecated parts that the operations of a document use. It never changes. A nil Document has none.
type Document struct {
	schema     *Schema
	operations map[*ast.OperationDefinition]operation
}

// operation is the result for one operation.
type operation struct {
	// coordinates are the deprecated parts in the text of the operation, without duplicates.
	coordinates []string
	// variables are the variables whose values may have deprecated parts.
	variables ast.VariableDefinitionList
}

// Document returns the deprecated parts that a valid document uses. It returns nil if the document uses none, whatever
// the values of its variables are. It ignores @skip and @include.
func (s *Schema) Document(doc *ast.QueryDocument) *Document {
	if s == nil {
		return nil
	}
	out := &Document{schema: s, operations: map[*ast.OperationDefinition]operation{}}
	for _, op := range doc.Operations {
		u := uses{schema: s, found: map[string]bool{}}
		u.selections(doc, op.SelectionSet, map[string]bool{})
		of := operation{coordinates: u.coordinates}
		for _, v := range op.VariableDefinitions {
			if s.inputs[v.Type.Name()] {
				of.variables = append(of.variables, v)
			}
		}
		if len(of.coordinates)+len(of.variables) > 0 {
			out.operations[op] = of
		}
	}
	if len(out.operations) == 0 {
		return nil
	}
	return out
}

// Each calls count once for each deprecated part that an operation uses. The variables must be coerced.
func (d *Document) Each(op *ast.OperationDefinition, variables map[string]any, count func(coordinate string)) {
	if d == nil {
		return
	}
	of := d.operations[op]
	if len(of.variables) == 0 {
		for _, coordinate := range of.coordinates {
			count(coordinate)
		}
		return
	}
	u := uses{schema: d.schema, found: map[string]bool{}}
	for _, coordinate := range of.coordinates {
		u.add(coordinate)
	}
	for _, v := range of.variables {
		u.value(v.Type, variables[v.Variable])
	}
	for _, coordinate := range u.coordinates {
		count(coordinate)
	}
}

// uses collects the deprecated parts that one operation uses.
type uses struct {
	schema      *Schema
	coordinates []string
	found       map[string]bool
}

// add adds a coordinate, unless it is empty.
func (u *uses) add(coordinate string) {
	if coordinate == "" || u.found[coordinate] {
		return
	}
	u.found[coordinate] = true
	u.coordinates = append(u.coordinates, coordinate)
}

func (u *uses) selections(doc *ast.QueryDocument, set ast.SelectionSet, visited map[string]bool) {
	for _, s := range set {
		switch s := s.(type) {
		case *ast.Field:
			u.field(s)
			u.selections(doc, s.SelectionSet, visited)
		case *ast.InlineFragment:
			u.selections(doc, s.SelectionSet, visited)
		case *ast.FragmentSpread:
			if f := doc.Fragments.ForName(s.Name); f != nil && !visited[s.Name] {
				visited[s.Name] = true
				u.selections(doc, f.SelectionSet, visited)
			}
		}
	}
}

func (u *uses) field(f *ast.Field) {
	u.add(u.schema.fields[f.Definition])
	for _, a := range f.Arguments {
		def := f.Definition.Arguments.ForName(a.Name)
		u.add(u.schema.arguments[def])
		u.literal(def.Type, a.Value)
	}
}

// literal adds the deprecated parts in a literal of a type, without its variables.
func (u *uses) literal(t *ast.Type, v *ast.Value) {
	if !u.schema.inputs[t.Name()] {
		return
	}
	def := u.schema.schema.Types[t.Name()]
	switch v.Kind {
	case ast.ListValue:
		for _, child := range v.Children {
			u.literal(t, child.Value)
		}
	case ast.EnumValue:
		u.add(u.schema.values[def.EnumValues.ForName(v.Raw)])
	case ast.ObjectValue:
		for _, child := range v.Children {
			if field := def.Fields.ForName(child.Name); field != nil {
				u.add(u.schema.fields[field])
				u.literal(field.Type, child.Value)
			}
		}
	}
}

// value adds the deprecated parts in a coerced value of a type.
func (u *uses) value(t *ast.Type, value any) {
	if !u.schema.inputs[t.Name()] {
		return
	}
	def := u.schema.schema.Types[t.Name()]
	switch value := value.(type) {
	case []any:
		for _, e := range value {
			u.value(t, e)
		}
	case string:
		u.add(u.schema.values[def.EnumValues.ForName(value)])
	case map[string]any:
		for name, inner := range value {
			if field := def.Fields.ForName(name); field != nil {
				u.add(u.schema.fields[field])
				u.value(field.Type, inner)
			}
		}
	}
}
