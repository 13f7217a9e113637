package catalogue

import (
	"slices"

	"github.com/sluicegw/sluice/backend/descriptor"
)

// Union returns the kinds with which a gateway stores resources while it serves two catalogues: the newest one, and the
// catalogue of the previous major version of the API.
//
// Each kind of the newest catalogue is extended by what only the previous one has: fields, enum values, verbs, indexes,
// and references of removed fields. Kinds that only the previous catalogue has are added. Added fields are not
// required. Where the catalogues differ, the newest one takes precedence. A kind that is not extended is returned
// unchanged.
func Union(newest, previous []descriptor.Kind) []descriptor.Kind {
	u := union{done: map[[2]*descriptor.Shape]*descriptor.Shape{}}
	out := make([]descriptor.Kind, 0, len(newest))
	for i := range newest {
		k := newest[i]
		if at := indexOfKind(previous, k.Name); at >= 0 {
			k = u.kind(&newest[i], &previous[at])
		}
		out = append(out, k)
	}
	for _, k := range previous {
		if indexOfKind(newest, k.Name) < 0 {
			// The other names of the kind may belong to another kind now.
			k.Singular = k.Name
			k.Plural = k.Name
			k.ShortNames = nil
			out = append(out, k)
		}
	}
	return out
}

func indexOfKind(kinds []descriptor.Kind, name string) int {
	return slices.IndexFunc(kinds, func(k descriptor.Kind) bool { return k.Name == name })
}

// union caches the results of [union.shape], by the shapes of the two catalogues.
type union struct {
	done map[[2]*descriptor.Shape]*descriptor.Shape
}

// kind returns a kind of the newest catalogue, extended by what only the previous one has.
func (u union) kind(is, was *descriptor.Kind) descriptor.Kind {
	out := *is
	out.Spec = u.shape(is.Spec, was.Spec)
	out.Status = u.shape(is.Status, was.Status)
	out.Expires = is.Expires || was.Expires
	out.Verbs = withMissing(is.Verbs, was.Verbs)
	out.SubKinds = withMissing(is.SubKinds, was.SubKinds)
	out.References = slices.Clip(is.References)
	out.FilterableFields = slices.Clone(is.FilterableFields)
	for _, r := range was.References {
		if f, _ := is.FieldAt(r.Path); f == nil {
			r.Inverse = ""
			out.References = append(out.References, r)
		} else {
			addIndex(&out, descriptor.FilterableField{Path: r.Path})
		}
	}
	for _, f := range was.FilterableFields {
		addIndex(&out, f)
	}
	return out
}

// withMissing returns the list is, extended by the elements of was that it lacks.
func withMissing[T comparable](is, was []T) []T {
	out := slices.Clip(is)
	for _, element := range was {
		if !slices.Contains(is, element) {
			out = append(out, element)
		}
	}
	return out
}

// addIndex adds an index of a field to a kind, or makes the existing index sortable. It does nothing if the kind has no
// scalar at the path.
func addIndex(k *descriptor.Kind, index descriptor.FilterableField) {
	f, _ := k.FieldAt(index.Path)
	if f == nil || f.Type == descriptor.TypeObject || f.Type == descriptor.TypeMap {
		return
	}
	at := slices.IndexFunc(k.FilterableFields, func(f descriptor.FilterableField) bool { return f.Path == index.Path })
	switch {
	case at >= 0:
		k.FilterableFields[at].Sortable = k.FilterableFields[at].Sortable || index.Sortable
	case !slices.ContainsFunc(k.References, func(r descriptor.Reference) bool { return r.Path == index.Path }):
		k.FilterableFields = append(k.FilterableFields, index)
	}
}

// shape returns a shape of the newest catalogue, extended by fields that only the previous one has. Fields are matched
// by stored names. If nothing is added, it returns the same shape.
func (u union) shape(is, was *descriptor.Shape) *descriptor.Shape {
	switch {
	case is == nil:
		return was
	case was == nil || is == was:
		return is
	}
	pair := [2]*descriptor.Shape{is, was}
	if out := u.done[pair]; out != nil {
		return out
	}
	out := *is
	out.Fields = slices.Clone(is.Fields)
	same := true
	for i := range was.Fields {
		before := &was.Fields[i]
		if f := out.Field(before.Name); f == nil {
			added := *before
			added.Required = false
			out.Fields = append(out.Fields, added)
			same = false
		} else if !u.field(f, before) {
			same = false
		}
	}
	u.done[pair] = &out
	if same {
		u.done[pair] = is
	}
	return u.done[pair]
}

// field extends a field of the newest catalogue by what only the previous one has. It reports whether the field stayed
// the same.
func (u union) field(is, was *descriptor.Field) (same bool) {
	same = true
	if is.Type != was.Type || is.List != was.List {
		return same
	}
	if is.Shape != nil && was.Shape != nil {
		shape := u.shape(is.Shape, was.Shape)
		same = shape == is.Shape
		is.Shape = shape
	}
	if is.Enum == nil || was.Enum == nil {
		return same
	}
	values := slices.Clip(is.Enum.Values)
	for _, v := range was.Enum.Values {
		if !is.Enum.Has(v.Stored) {
			values = append(values, v)
		}
	}
	if len(values) > len(is.Enum.Values) {
		is.Enum = &descriptor.Enum{Name: is.Enum.Name, Values: values}
		same = false
	}
	return same
}
