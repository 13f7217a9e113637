package kind

import (
	"slices"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/jsontree"
)

// A gateway can share its store with a newer gateway whose kinds have more fields. Its writes check the fields that it
// knows and keep the others.

// Known returns the tree without the fields that the shape does not know. The result may be the tree itself, so it must
// not be modified.
func (s *Shape) Known(tree map[string]any) map[string]any {
	if s.CanName(tree) {
		return tree
	}
	return s.Project(tree)
}

// CanName reports whether the shape knows all fields in a tree.
func (s *Shape) CanName(tree map[string]any) bool {
	for name, value := range tree {
		if f := s.fields[name]; f == nil || f.shape != nil && !f.canName(value) {
			return false
		}
	}
	return true
}

// canName reports whether the shape of the field knows all fields in a value.
func (f *Field) canName(value any) bool {
	switch value := value.(type) {
	case map[string]any:
		return f.shape.CanName(value)
	case []any:
		return !slices.ContainsFunc(value, func(e any) bool { return !f.canName(e) })
	}
	return true
}

// Project returns a copy of the tree with only the fields that the shape knows.
func (s *Shape) Project(tree map[string]any) map[string]any {
	out := make(map[string]any, len(tree))
	for name, value := range tree {
		if f := s.fields[name]; f != nil {
			out[name] = f.project(value)
		}
	}
	return out
}

func (f *Field) project(value any) any {
	if f.shape == nil {
		return jsontree.Clone(value)
	}
	switch value := value.(type) {
	case map[string]any:
		return f.shape.Project(value)
	case []any:
		out := make([]any, len(value))
		for i, e := range value {
			out[i] = f.project(e)
		}
		return out
	}
	return value
}

// KeepUnknown copies the fields of old that the shape does not know into next, so that they survive
// writes of an older gateway.
func (s *Shape) KeepUnknown(next, old map[string]any) {
	for name, was := range old {
		f := s.fields[name]
		if f == nil {
			if _, ok := next[name]; !ok {
				next[name] = was
			}
			continue
		}
		if f.shape == nil {
			continue
		}
		switch now := next[name].(type) {
		case map[string]any:
			if was, ok := was.(map[string]any); ok {
				f.shape.KeepUnknown(now, was)
			}
		case []any:
			if was, ok := was.([]any); ok {
				f.keepUnknownElements(now, was)
			}
		}
	}
}

// keepUnknownElements calls KeepUnknown for each pair of corresponding objects in two lists. In a MAP two objects
// correspond if their keys are equal. In other lists they correspond if all fields that the shape knows are equal.
func (f *Field) keepUnknownElements(next, old []any) {
	if f.canName(old) { // the usual case
		return
	}
	used := make([]bool, len(old))
	for _, e := range next {
		now, ok := e.(map[string]any)
		if !ok {
			continue
		}
		for i, o := range old {
			was, ok := o.(map[string]any)
			if !ok || used[i] || !f.sameElement(now, was) {
				continue
			}
			used[i] = true
			f.shape.KeepUnknown(now, was)
			break
		}
	}
}

// sameElement reports whether two objects correspond: see keepUnknownElements.
func (f *Field) sameElement(a, b map[string]any) bool {
	if f.ListType == descriptor.ListMap {
		return !slices.ContainsFunc(f.Keys, func(k string) bool { return !jsontree.Equal(a[k], b[k]) })
	}
	return f.shape.same(a, b, stored)
}

// keptValues are stored values that a new object cannot have, but that a change may keep in their fields. Examples are
// enum values stored by a newer gateway, and texts that are no names in fields that became names later.
type keptValues map[*Field][]string

// add adds the kept values of a stored tree.
func (k *keptValues) add(s *Shape, tree map[string]any) {
	if !s.keeps {
		return
	}
	for _, f := range s.ordered {
		if f.shape != nil || f.keeps() {
			k.addValue(f, tree[f.Name])
		}
	}
}

func (k *keptValues) addValue(f *Field, value any) {
	switch value := value.(type) {
	case []any:
		for _, e := range value {
			k.addValue(f, e)
		}
	case map[string]any:
		if f.shape != nil {
			k.add(f.shape, value)
		}
	case string:
		if f.Enum != nil && !f.Enum.Has(value) || f.Constraint.Format == descriptor.FormatName && !isName(value) {
			if *k == nil {
				*k = keptValues{}
			}
			(*k)[f] = append((*k)[f], value)
		}
	}
}

// keeps reports whether the field can have [keptValues].
func (f *Field) keeps() bool { return f.Enum != nil || f.Constraint.Format == descriptor.FormatName }

// Deprecated appends a warning for each deprecated field that the object at a path sets, up to maxViolations.
func (s *Shape) Deprecated(
	out []failure.Warning, at *failure.Path, names failure.FieldNames, tree map[string]any,
) []failure.Warning {
	if !s.deprecates {
		return out
	}
	for _, name := range jsontree.Keys(tree) {
		f := s.fields[name]
		if f == nil || len(out) >= maxViolations {
			continue
		}
		inner := at.Field(f.Field)
		if f.Deprecated != "" {
			where := inner.Text(names)
			out = append(out, failure.Warning{
				Code:       failure.WarningDeprecated,
				Message:    where + " is deprecated: " + f.Deprecated,
				Path:       where,
				Deprecated: s.Name + "." + f.InAPI(),
			})
		}
		switch value := tree[name].(type) {
		case map[string]any:
			if f.shape != nil {
				out = f.shape.Deprecated(out, inner, names, value)
			}
		case []any:
			for i, e := range value {
				if m, ok := e.(map[string]any); ok && f.shape != nil {
					out = f.shape.Deprecated(out, inner.Element(i), names, m)
				}
			}
		}
	}
	return out
}

// DropUnknown removes the fields that the shape does not know from a patch, even if they are null, and adds a violation
// for each of them. It does not descend into lists, which are validated as a whole later.
func (v *Violations) DropUnknown(s *Shape, at *failure.Path, patch map[string]any) {
	for _, name := range jsontree.Keys(patch) {
		f := s.fields[name]
		if f == nil {
			delete(patch, name)
			v.addUnknown(s, at, name)
		} else if m, ok := patch[name].(map[string]any); ok && f.shape != nil {
			v.DropUnknown(f.shape, at.Field(f.Field), m)
		}
	}
}

// addUnknown adds the violation that the shape has no field called name.
func (v *Violations) addUnknown(s *Shape, at *failure.Path, name string) {
	if v.full() {
		v.dropped++ // saves the search for a similar name
		return
	}
	v.Add(at.Name(name), "unknown", nil, "is not a field of %s%s", s.Name, s.suggest(name))
}
