package generator

import (
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend"
	sdl "github.com/sluicegw/sluice/graph/kinds"
)

// filter derives the filter of an object type: its indexed fields, and the
// objects that have any. A type in several places has what any of them has.
func (d *derivation) filter(k *sdl.Kind, s *backend.Shape, path string) {
	if s == nil || !filtered(k, path) {
		return
	}
	def := d.filters[s.Name]
	if def == nil {
		def = &ast.Definition{
			Kind: ast.InputObject, Name: sdl.FilterType(s.Name),
			Description: "Which resources a filter keeps by their " + s.Name + ": those for which all that is given holds; null is as if left out.",
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
			name = sdl.FilterType(f.Shape.Name)
			d.filter(k, f.Shape, at)
		default:
			continue
		}
		if def.Fields.ForName(f.Name) != nil {
			continue // of another kind, or of another place of the type
		}
		text := f.Description
		if f.Default != nil {
			text = paragraph(text, "Absent means "+effective(f)+", in filters too.")
		}
		def.Fields = append(def.Fields, &ast.FieldDefinition{
			Name: f.Name, Type: &ast.Type{NamedType: name}, Description: text, Directives: deprecated(f.Deprecated),
		})
	}
}

func indexed(k *sdl.Kind, path string) bool {
	return slices.ContainsFunc(k.Indexes, func(i backend.Index) bool { return i.Path == path })
}

// filtered says whether anything below a path is indexed.
func filtered(k *sdl.Kind, path string) bool {
	return slices.ContainsFunc(k.Indexes, func(i backend.Index) bool { return strings.HasPrefix(i.Path, path+".") })
}

// operators is the type of the operators of a field.
func (d *derivation) operators(f *backend.Field) string {
	name := string(f.Type)
	if f.Enum != nil {
		name = f.Enum.Name
		d.enumOperators(f)
	}
	if f.List {
		return sdl.ListFilterType(name)
	}
	return sdl.FilterType(name)
}

// enumOperators derives the operators of an enum, or of lists of it.
func (d *derivation) enumOperators(f *backend.Field) {
	e := f.Enum.Name
	one := &ast.Type{NamedType: e}
	many := &ast.Type{Elem: ast.NonNullNamedType(e, nil)}
	field := func(name string, t *ast.Type, text string) *ast.FieldDefinition {
		return &ast.FieldDefinition{Name: name, Type: t, Description: text}
	}
	if f.List {
		d.listFilters[e] = &ast.Definition{
			Kind: ast.InputObject, Name: sdl.ListFilterType(e),
			Description: "Which lists a filter keeps: those for which all that is given holds; null is as if left out. An absent list is empty.",
			Fields: ast.FieldList{
				field("hasAll", many, "The list has each of them. At most 100 elements."),
				field("hasAny", many, "The list has at least one of them. At most 100 elements."),
				field("hasNone", many, "The list has none of them. At most 100 elements."),
			},
		}
		return
	}
	d.filters[e] = &ast.Definition{
		Kind: ast.InputObject, Name: sdl.FilterType(e),
		Description: "Which values a filter keeps: those for which all that is given holds; null is as if left out.",
		Fields: ast.FieldList{
			field("eq", one, "Equal."),
			field("ne", one, "Not equal, or absent."),
			field("in", many, "Equal to one of them. At most 100 elements."),
		},
	}
}

// order is one field that orders of a kind can name.
type order struct {
	// Name in the API and Field of the service.
	Name, Field, Description string
}

// Orders are the fields that orders of the kind can name.
func (v *kindView) Orders() []order {
	out := []order{{"NAME", "name", "Name of the resource."}}
	if v.Namespaced() {
		out = append(out, order{"NAMESPACE", "namespace", "Namespace of the name."})
	}
	out = append(out,
		order{"CREATED_AT", "createdAt", "When the resource was created."},
		order{"UPDATED_AT", "updatedAt", "When the resource was last changed."})
	for _, i := range v.Indexes {
		if i.Sortable {
			out = append(out, order{sdl.OrderValue(i.Path), i.Path, "The field " + i.Path + "."})
		}
	}
	return out
}

// SpecFilter is the type of the filter of the spec, empty if nothing in it is indexed.
func (v *kindView) SpecFilter() string {
	if !filtered(&v.Kind, "spec") {
		return ""
	}
	return sdl.FilterType(v.Spec.Name)
}

// StatusFilter is the same of the status.
func (v *kindView) StatusFilter() string {
	if v.Status == nil || !filtered(&v.Kind, "status") {
		return ""
	}
	return sdl.FilterType(v.Status.Name)
}

// HasConditions says whether the status has conditions: objects with type and status.
func (v *kindView) HasConditions() bool {
	if v.Status == nil {
		return false
	}
	f := v.Status.Field("conditions")
	if f == nil || !f.List || f.Shape == nil {
		return false
	}
	for _, name := range []string{"type", "status"} {
		if g := f.Shape.Field(name); g == nil || g.Type != backend.TypeString || g.List {
			return false
		}
	}
	return true
}
