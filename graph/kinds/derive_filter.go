package kinds

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sluicegw/sluice/backend/descriptor"
)

// filter derives the filter type of an object type. It has a field for each indexed field, and for each object with
// indexed fields. If the type is used in several places, a field that is indexed in any of them is included.
func (d *typeDerivation) filter(k *Kind, s *descriptor.Shape, path string) {
	if s == nil || !filtered(k, path) {
		return
	}
	def, _ := d.input(FilterType(s.Name), "Keeps resources by their "+s.Name+": those for which everything given holds; null counts as left out.")
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
		if def.has(f.InAPI()) {
			continue // added for another kind, or for another use of the type
		}
		text := f.Description
		if f.Default != nil {
			text = paragraph(text, "Absent means "+effective(f)+", in filters too.")
		}
		if f.Type == descriptor.TypeString && longest(f) > maxIndexed && strings.HasPrefix(at, "status.") {
			text = paragraph(text, fmt.Sprintf("A value of more than %d characters counts as absent.", maxIndexed))
		}
		def.Fields = append(def.Fields, derivedField{f.InAPI(), name, text, f.Deprecated})
	}
}

func indexed(k *Kind, path string) bool {
	return slices.ContainsFunc(k.FilterableFields, func(i descriptor.FilterableField) bool { return i.Path == path })
}

// filtered reports whether any field below a path is indexed.
func filtered(k *Kind, path string) bool {
	return slices.ContainsFunc(k.FilterableFields, func(i descriptor.FilterableField) bool {
		return strings.HasPrefix(i.Path, path+".")
	})
}

// operators returns the name of the type with the operators for a field.
func (d *typeDerivation) operators(f *descriptor.Field) string {
	name := string(f.Type)
	if f.Enum != nil {
		name = f.Enum.Name
		if f.List {
			d.EnumLists[name] = true
		} else {
			d.Enums[name] = true
		}
	}
	if f.List {
		return ListFilterType(name)
	}
	return FilterType(name)
}
