package kinds

import (
	"fmt"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend/descriptor"
)

// filter derives the filter of an object type: its indexed fields, and the
// objects that have any. A type in several places has what any of them has.
func (d *typeDerivation) filter(k *Kind, s *descriptor.Shape, path string) {
	if s == nil || !filtered(k, path) {
		return
	}
	def := d.filters[s.Name]
	if def == nil {
		def = &ast.Definition{
			Kind: ast.InputObject, Name: FilterType(s.Name),
			Description: "Keeps resources by their " + s.Name + ": those for which everything given holds; null counts as left out.",
		}
		d.filters[s.Name] = def
	}
	for i := range s.Fields {
		f := &s.Fields[i]
		at := path + "." + f.Name
		name := ""
		switch {
		case indexed(k, at):
			name = d.operators(f)
		case f.Shape != nil && filtered(k, at):
			name = FilterType(f.Shape.Name)
			d.filter(k, f.Shape, at)
		default:
			continue
		}
		if def.Fields.ForName(f.InAPI()) != nil {
			continue // of another kind, or of another place of the type
		}
		text := f.Description
		if f.Default != nil {
			text = paragraph(text, "Absent means "+effective(f)+", in filters too.")
		}
		if f.Type == descriptor.TypeString && longest(f) > maxIndexed && strings.HasPrefix(at, "status.") {
			text = paragraph(text, fmt.Sprintf("A value of more than %d characters counts as absent.", maxIndexed))
		}
		def.Fields = append(def.Fields, &ast.FieldDefinition{
			Name: f.InAPI(), Type: &ast.Type{NamedType: name}, Description: text, Directives: deprecated(f.Deprecated),
		})
	}
}

func indexed(k *Kind, path string) bool {
	return slices.ContainsFunc(k.FilterableFields, func(i descriptor.FilterableField) bool { return i.Path == path })
}

// filtered says whether anything below a path is indexed.
func filtered(k *Kind, path string) bool {
	return slices.ContainsFunc(k.FilterableFields, func(i descriptor.FilterableField) bool { return strings.HasPrefix(i.Path, path+".") })
}

// operators is the type of the operators of a field.
func (d *typeDerivation) operators(f *descriptor.Field) string {
	name := string(f.Type)
	if f.Enum != nil {
		name = f.Enum.Name
		d.enumOperators(f)
	}
	if f.List {
		return ListFilterType(name)
	}
	return FilterType(name)
}

// enumOperators derives the operators of an enum, or of lists of it.
func (d *typeDerivation) enumOperators(f *descriptor.Field) {
	e := f.Enum.Name
	one := &ast.Type{NamedType: e}
	many := &ast.Type{Elem: ast.NonNullNamedType(e, nil)}
	truth := &ast.Type{NamedType: "Boolean"}
	field := func(name string, t *ast.Type, text string) *ast.FieldDefinition {
		return &ast.FieldDefinition{Name: name, Type: t, Description: text}
	}
	if f.List {
		d.listFilters[e] = &ast.Definition{
			Kind: ast.InputObject, Name: ListFilterType(e),
			Description: "Keeps lists for which all operators hold. At least one is given, and none is null. An absent list counts as empty.",
			Fields: ast.FieldList{
				field("hasAll", many, "The list has each of them. At most 100 elements."),
				field("hasAny", many, "The list has at least one of them. At most 100 elements."),
				field("hasNone", many, "The list has none of them. At most 100 elements."),
				field("isNull", truth, "true: the list is absent or empty; false: it has elements."),
			},
		}
		return
	}
	d.filters[e] = &ast.Definition{
		Kind: ast.InputObject, Name: FilterType(e),
		Description: "Keeps values for which all operators hold. At least one is given, and none is null.",
		Fields: ast.FieldList{
			field("eq", one, "Equal."),
			field("ne", one, "Not equal, or absent."),
			field("in", many, "Equal to one of them. At most 100 elements."),
			field("notIn", many, "Equal to none of them, or absent. At most 100 elements."),
			field("isNull", truth, "true: there is no value; false: there is one."),
		},
	}
}
