package kinds

import (
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend/descriptor"
)

// maxIndexed is the maximum length of an indexed value, in characters.
const maxIndexed = 256

// place is one occurrence of a field in the body of a kind.
type place struct {
	kind *Kind
	// path is the path from the root of the body, with dots. Elements of a list add no step.
	path string
	// owner is the author's type with the field.
	owner *ast.Definition
	ast   *ast.FieldDefinition
	field *descriptor.Field
	// listed reports whether the field is inside a list of objects.
	listed bool
	// types are the author's types that contain the field, the outermost first; the last is owner.
	types []string
}

// places calls visit for each field of a shape, including the shapes inside it.
func (l *loader) places(k *Kind, s *descriptor.Shape, above *place, visit func(*place)) {
	if s == nil {
		return // kindParts has reported it
	}
	owner := l.types[s.Name]
	if s.Name == condition {
		owner = l.api.Definitions.ForName(condition)
	}
	types := append(slices.Clone(above.types), s.Name)
	for i := range s.Fields {
		f := &s.Fields[i]
		p := &place{
			kind: k, path: above.path + "." + f.Name, owner: owner, ast: owner.Fields.ForName(f.Name), field: f,
			listed: above.listed, types: types,
		}
		visit(p)
		if f.Shape != nil {
			l.places(k, f.Shape, &place{path: p.path, listed: p.listed || f.List, types: types}, visit)
		}
	}
}

// indexes reads @filterable and @sortable on all fields of a kind.
func (l *loader) indexes(k *Kind) {
	visit := func(p *place) {
		filterable, sortable := l.read(p.ast.Directives, "filterable"), l.read(p.ast.Directives, "sortable")
		d := filterable
		if d == nil {
			d = sortable
		}
		if d == nil || !l.indexable(p, d, sortable) {
			return
		}
		k.FilterableFields = append(k.FilterableFields, descriptor.FilterableField{
			Path:     p.path,
			Sortable: sortable != nil,
		})
	}
	l.places(k, k.Spec, &place{path: "spec"}, visit)
	l.places(k, k.Status, &place{path: "status"}, visit)
	orders := names{}
	for _, i := range k.FilterableFields {
		if !i.Sortable {
			continue
		}
		if other := orders.add(OrderValue(i.Path), i.Path); other != "" {
			l.report(
				k.Definition.Position,
				"kind %s: orders by %s and by %s would have one name, %s",
				k.Name,
				other,
				i.Path,
				OrderValue(i.Path),
			)
		}
	}
}

// indexable reports a field that cannot be indexed, and returns false for it.
func (l *loader) indexable(p *place, d, sortable *directive) bool {
	where, f := p.owner.Name+"."+p.ast.Name, p.field
	switch {
	case f.Type == descriptor.TypeMap, f.Type == "":
		return false // its type has been reported
	case f.Type == descriptor.TypeObject:
		l.report(d.Position, "%s: @%s is for scalars, enums and lists of them", where, d.Name)
	case p.listed:
		l.report(d.Position, "%s: @%s inside a list: %s of kind %s would have many values with no order among them", where, d.Name, p.path, p.kind.Name)
	case f.List && sortable != nil:
		l.report(sortable.Position, "%s: @sortable is not for lists; use @filterable", where)
	case f.Type == descriptor.TypeString && l.isMalformed(p.ast.Directives, "constraint"):
		return false // its length could not be read
	case f.Type == descriptor.TypeString && strings.HasPrefix(p.path, "status."):
		if f.Constraint.MaxLength != nil {
			return l.filterNames(p, d, where) // longer values are not indexed
		}
		l.report(d.Position, "%s: @%s of a String wants a maxLength", where, d.Name)
	case f.Type == descriptor.TypeString && longest(f) > maxIndexed:
		l.report(d.Position, "%s: @%s of a String in a spec wants a maxLength of at most %d", where, d.Name, maxIndexed)
	default:
		return l.filterNames(p, d, where)
	}
	return false
}

// filterNames reports a field whose filter type would have the same name as a type of the API.
func (l *loader) filterNames(p *place, d *directive, where string) bool {
	types := p.types
	if p.field.Enum != nil {
		types = append(slices.Clone(types), p.field.Enum.Name)
	}
	for _, t := range types {
		if l.isAPI(FilterType(t)) {
			l.report(d.Position, "%s: @%s: the filter of type %s would be named %s, as one of the API; give the type another name", where, d.Name, t, FilterType(t))
			return false
		}
	}
	return true
}

// longest returns the maximum length of a String; maxIndexed+1 if it has none.
func longest(f *descriptor.Field) int {
	c := f.Constraint
	switch {
	case c.MaxLength != nil:
		return *c.MaxLength
	case len(c.In) > 0:
		return len(slices.MaxFunc(c.In, func(a, b string) int { return len(a) - len(b) }))
	}
	return maxIndexed + 1
}

// OrderValue returns the value of the order enum for a path: SPEC_RESOURCE_MTU for spec.resource.mtu.
func OrderValue(path string) string {
	var b strings.Builder
	lower := false
	for _, r := range path {
		upper := r >= 'A' && r <= 'Z'
		if upper && lower {
			b.WriteByte('_')
		}
		lower = !upper && r != '.' && r != '_'
		if r == '.' {
			r = '_'
		}
		b.WriteRune(r)
	}
	return strings.ToUpper(b.String())
}
