package kind

import (
	"slices"
	"strings"

	"github.com/sluicegw/sluice/backend/descriptor"
)

// Names reports what a released version of the API contains. It identifies fields and enum values by their API names,
// which may differ from the stored names.
type Names interface {
	Kind(kind string) bool
	// Field reports whether a type has a field. The type may be an output or an input type.
	Field(typ, field string) bool
	Value(enum, value string) bool
	// ShortName reports whether the version has a short name of a kind. SubKind reports whether it has a subKind of the
	// kind. Expires reports whether callers of the version can set an expiry.
	ShortName(k *descriptor.Kind, name string) bool
	SubKind(k *descriptor.Kind, name string) bool
	Expires(k *descriptor.Kind) bool
	// Verb reports whether the version has a verb of a kind.
	Verb(k *descriptor.Kind, verb descriptor.Verb) bool
	// Filter and Sort report whether filters and sort orders of a kind accept a path.
	Filter(k *descriptor.Kind, path string) bool
	Sort(k *descriptor.Kind, path string) bool
	// Deprecated returns the reason why a field is deprecated; "" if it is not.
	Deprecated(typ, field string) string
}

// View returns the catalogue as a released version of the API: the kinds, fields and values that the version contains.
// All others are handled like fields that an older gateway does not know. A kind that the version contains completely
// is shared with c. Bodies, index rows and stored references are defined by the whole catalogue.
func (c Catalogue) View(names Names) Catalogue {
	v := viewer{names: names, done: map[*Shape]*Shape{}}
	out := Catalogue{byName: map[string]*Kind{}}
	for _, k := range c.ordered {
		if names.Kind(k.Name) {
			out.add(v.kind(k))
		}
	}
	return out
}

// add adds a kind. None of its names may be in use.
func (c *Catalogue) add(k *Kind) {
	c.ordered = append(c.ordered, k)
	for _, name := range append([]string{k.Name, k.Singular, k.Plural}, k.ShortNames...) {
		c.byName[strings.ToLower(name)] = k
	}
	c.byName[k.Name] = k
}

// Whole returns the stored kind of which this kind is a view, or the kind itself if it is not a view.
func (k *Kind) Whole() *Kind {
	for k.whole != nil {
		k = k.whole
	}
	return k
}

// NextValidator returns the kind that must also accept a write after this kind has accepted it; nil if there is none.
// For a view this is the whole kind. For a kind of the previous major version it is the newest kind.
func (k *Kind) NextValidator() *Kind { return k.nextValidator }

// viewer builds one [Catalogue.View].
type viewer struct {
	names Names
	// done maps each shape to the part that the version contains.
	done map[*Shape]*Shape
}

// kind returns the part of a kind that the version contains, or the kind itself if the version contains all of it.
func (v viewer) kind(k *Kind) *Kind {
	spec, status := v.shape(k.Spec), v.shape(k.Status)
	d := *k.Kind
	d.Verbs = keep(k.Verbs, func(verb descriptor.Verb) bool { return v.names.Verb(k.Kind, verb) })
	d.ShortNames = keep(k.ShortNames, func(name string) bool { return v.names.ShortName(k.Kind, name) })
	d.SubKinds = keep(k.SubKinds, func(name string) bool { return v.names.SubKind(k.Kind, name) })
	d.Expires = k.Expires && v.names.Expires(k.Kind)
	d.References = keep(k.References, func(r descriptor.Reference) bool {
		return v.names.Kind(r.Kind) && v.hasReference(k, r)
	})
	d.FilterableFields = keep(k.FilterableFields, func(f descriptor.FilterableField) bool {
		return v.hasPath(k, f.Path) && v.names.Filter(k.Kind, f.Path)
	})
	for i, r := range d.References {
		if !v.names.Field(r.Kind, r.Inverse) {
			d.References[i].Inverse = ""
		}
	}
	for i, f := range d.FilterableFields {
		if f.Sortable && !v.names.Sort(k.Kind, f.Path) {
			d.FilterableFields[i].Sortable = false
		}
	}
	d.Columns = keep(k.Columns, func(c descriptor.Column) bool { return v.hasPath(k, c.Path) })
	if spec == k.Spec && status == k.Status && len(d.Verbs) == len(k.Verbs) && d.Expires == k.Expires &&
		len(d.ShortNames) == len(k.ShortNames) && len(d.SubKinds) == len(k.SubKinds) &&
		slices.Equal(d.References, k.References) && slices.Equal(d.FilterableFields, k.FilterableFields) {
		return k
	}
	d.Spec = spec.Shape
	if status != nil {
		d.Status = status.Shape
	}
	out := *k
	out.Kind = &d
	out.Spec = spec
	out.Status = status
	out.Placed = placedOf(d.Spec)
	out.Conditions = d.Conditions()
	out.whole = k
	out.nextValidator = k
	return &out
}

// keep returns a new slice with the elements for which kept returns true.
func keep[T any](all []T, kept func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(all), func(e T) bool { return !kept(e) })
}

// hasReference reports whether the version has the field of a reference, and the API field that shows the target of the
// reference.
func (v viewer) hasReference(k *Kind, r descriptor.Reference) bool {
	if !v.hasPath(k, r.Path) {
		return false
	}
	parent, _ := k.FieldAt(r.Path[:strings.LastIndex(r.Path, ".")])
	return v.names.Field(k.Name, r.Field) || parent != nil && parent.Shape != nil &&
		v.names.Field(parent.Shape.Name, r.Field)
}

// hasPath reports whether the version has all fields on a path from the root of the body.
func (v viewer) hasPath(k *Kind, path string) bool {
	part, rest, _ := strings.Cut(path, ".")
	s := map[string]*Shape{"spec": k.Spec, "status": k.Status}[part]
	for step := range strings.SplitSeq(rest, ".") {
		if s == nil || s.fields[step] == nil || !v.names.Field(s.Name, s.fields[step].InAPI()) {
			return false
		}
		s = s.fields[step].shape
	}
	return true
}

// shape returns the part of a shape that the version contains, or the shape itself if the version contains all of it.
func (v viewer) shape(s *Shape) *Shape {
	if s == nil {
		return nil
	}
	if out := v.done[s]; out != nil {
		return out
	}
	d := &descriptor.Shape{Name: s.Name}
	out := &Shape{Shape: d, fields: map[string]*Field{}}
	all := true
	for _, f := range s.ordered {
		if !v.names.Field(s.Name, f.InAPI()) {
			all = false
			continue
		}
		seen, same := v.field(s, f)
		all = all && same
		out.ordered = append(out.ordered, seen)
	}
	if all {
		v.done[s] = s
		return s
	}
	for _, f := range out.ordered {
		d.Fields = append(d.Fields, *f.Field)
	}
	for i, f := range out.ordered {
		f.Field = &d.Fields[i]
		out.addField(f)
	}
	for _, f := range out.ordered {
		if out.fields[f.MergeInto] == nil {
			f.MergeInto = ""
		}
	}
	d.MaxProperties = s.MaxProperties
	if len(out.ordered) == len(s.ordered) { // otherwise the minimum may count fields that the version lacks
		d.MinProperties = s.MinProperties
	}
	for i, r := range s.rules {
		if v.hasRule(r) {
			d.Rules = append(d.Rules, s.Rules[i])
			out.rules = append(out.rules, r)
		}
	}
	v.done[s] = out
	return out
}

// field returns a copy of a field as the version has it, and reports whether the copy equals the field.
func (v viewer) field(s *Shape, f *Field) (*Field, bool) {
	seen, d := *f, *f.Field
	same := true
	seen.shape = v.shape(f.shape)
	if seen.shape != f.shape {
		d.Shape = seen.shape.Shape
		same = false
	}
	if d.Enum != nil {
		values := keep(d.Enum.Values, func(value descriptor.EnumValue) bool {
			return v.names.Value(d.Enum.Name, value.Name)
		})
		if len(values) < len(d.Enum.Values) {
			d.Enum = &descriptor.Enum{Name: d.Enum.Name, Values: values}
			same = false
		}
	}
	if why := v.names.Deprecated(s.Name, f.InAPI()); why != d.Deprecated {
		d.Deprecated = why
		same = false
	}
	seen.Field = &d
	return &seen, same
}

// hasRule reports whether the version contains everything that a rule reads. The view evaluates only such rules. The
// whole kind evaluates all rules.
func (v viewer) hasRule(r rule) bool {
	for _, in := range r.inputs {
		for _, f := range in.path {
			if !v.names.Field(f.of, f.InAPI()) {
				return false
			}
		}
		last := in.path[len(in.path)-1]
		if !in.presence && last.shape != nil && v.shape(last.shape) != last.shape {
			return false
		}
	}
	return len(r.inputs) > 0
}

// IndexOf returns the index with a path. It returns nil if there is none, or if callers of this version cannot name the
// path.
func (k *Kind) IndexOf(path string) *indexed {
	if k.whole != nil &&
		!slices.ContainsFunc(k.FilterableFields, func(f descriptor.FilterableField) bool { return f.Path == path }) &&
		!slices.ContainsFunc(k.References, func(r descriptor.Reference) bool { return r.Path == path }) {
		return nil
	}
	return k.Rows.Index(path)
}
