package kind

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/sluicegw/sluice/backend/body"
	"github.com/sluicegw/sluice/backend/descriptor"
)

// Newest returns the newest major version of the API as a view of c. The kinds of c must be the union of two major
// versions. Fields that only the previous version has are handled like fields that an older gateway does not know. See
// [Catalogue.Previous].
func (c Catalogue) Newest(kinds []descriptor.Kind) (Catalogue, error) { return c.major(kinds, nil) }

// Previous returns the previous major version of the API as a view of the stored kinds. It has other names, defaults,
// constraints and rules for the same stored fields. The stored kinds define bodies, index rows, stored references, and
// what is readable. A write that is valid in the previous version is also validated against the newest one. The errors
// of this validation use the names of the previous version.
func (c Catalogue) Previous(kinds []descriptor.Kind) (Catalogue, error) {
	var validators []descriptor.Kind
	n := naming{}
	for i := range kinds {
		if whole := c.byName[kinds[i].Name]; whole != nil && !whole.describes(&kinds[i]) {
			validator := *whole.Kind
			validator.Spec = n.shape(whole.Kind.Spec, kinds[i].Spec)
			validators = append(validators, validator)
		}
	}
	compiled, err := Compile(validators)
	if err != nil {
		return Catalogue{}, err
	}
	return c.major(kinds, compiled.byName)
}

// major compiles kinds as views of the kinds in the catalogue. validators maps the name of a kind to the kind that then
// validates writes too. A kind that equals the stored kind is shared with the catalogue.
func (c Catalogue) major(kinds []descriptor.Kind, validators map[string]*Kind) (Catalogue, error) {
	var own []descriptor.Kind
	for i := range kinds {
		whole := c.byName[kinds[i].Name]
		if whole == nil {
			return Catalogue{}, fmt.Errorf("kind %s is not stored", kinds[i].Name)
		}
		if !whole.describes(&kinds[i]) {
			own = append(own, kinds[i])
		}
	}
	compiled, err := Compile(own)
	if err != nil {
		return Catalogue{}, err
	}
	out := Catalogue{byName: map[string]*Kind{}}
	var bodies body.Viewer
	for i := range kinds {
		whole := c.byName[kinds[i].Name]
		k := compiled.byName[kinds[i].Name]
		if k == nil {
			k = whole
		} else {
			k.Body = bodies.Kind(whole.Body, k.Kind)
			k.Rows = whole.Rows
			k.Declared = whole.Declared
			k.Referred = whole.Referred
			k.whole = whole
			k.nextValidator = validators[k.Name]
		}
		out.add(k)
	}
	return out, nil
}

// naming caches the results of naming.shape by its two arguments.
type naming map[[2]*descriptor.Shape]*descriptor.Shape

// shape returns s with the names that another shape has for its types, fields and enum values. If one of them is nil,
// the result is s.
func (n naming) shape(s, names *descriptor.Shape) *descriptor.Shape {
	if s == nil || names == nil {
		return s
	}
	pair := [2]*descriptor.Shape{s, names}
	if out := n[pair]; out != nil {
		return out
	}
	out := *s
	out.Name = names.Name
	out.Fields = slices.Clone(s.Fields)
	n[pair] = &out
	for i := range out.Fields {
		f := &out.Fields[i]
		own := names.Field(f.Name)
		if own == nil {
			continue
		}
		f.APIName = own.APIName
		f.ManifestAt = own.ManifestAt
		f.Shape = n.shape(f.Shape, own.Shape)
		f.Enum = namedEnum(f.Enum, own.Enum)
	}
	return &out
}

// namedEnum returns e with the names that another enum has for the same stored values. If one of them is nil, the
// result is e.
func namedEnum(e, names *descriptor.Enum) *descriptor.Enum {
	if e == nil || names == nil {
		return e
	}
	out := &descriptor.Enum{Name: names.Name, Values: slices.Clone(e.Values)}
	for i, v := range out.Values {
		at := slices.IndexFunc(names.Values, func(o descriptor.EnumValue) bool { return o.Stored == v.Stored })
		if at >= 0 {
			out.Values[i].Name = names.Values[at].Name
		}
	}
	return out
}

// describes reports whether the kind was compiled from a descriptor equal to d.
func (k *Kind) describes(d *descriptor.Kind) bool { return reflect.DeepEqual(k.Kind, d) }

// IndexField returns the indexed field with the names of this kind. The values of an enum keep the order in which the
// index sorts them.
func (k *Kind) IndexField(i *indexed) *descriptor.Field {
	own, _ := k.FieldAt(i.path)
	if k.whole == nil || own == nil {
		return i.Field
	}
	out := *i.Field
	out.Enum = namedEnum(i.Field.Enum, own.Enum)
	return &out
}
