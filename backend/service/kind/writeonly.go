package kind

import (
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/jsontree"
)

// A write-only field can be set but is never shown. A client that replaces a spec therefore cannot send back the value
// of the field. So a spec without the field keeps the stored value. To clear the field, the client sends null or an
// empty text, list, map or object. Lists never contain write-only fields.

// eachHidden calls visit for each write-only field of the objects in a tree. It passes the field, the path of the
// field, and the object that may contain its value. If visit returns false, eachHidden stops and returns false.
func (s *Shape) eachHidden(
	at *failure.Path, tree map[string]any, visit func(f *Field, at *failure.Path, in map[string]any) bool,
) bool {
	if !s.Hides {
		return true
	}
	for name, f := range s.fields {
		inside := at.Field(f.Field)
		if f.WriteOnly {
			if !visit(f, inside, tree) {
				return false
			}
		} else if inner, ok := tree[name].(map[string]any); ok && f.shape != nil &&
			!f.shape.eachHidden(inside, inner, visit) {
			return false
		}
	}
	return true
}

// TakeCleared removes the values that clear write-only fields from a spec. It returns the paths of these fields.
func (s *Shape) TakeCleared(at *failure.Path, tree map[string]any) map[string]bool {
	out := map[string]bool{}
	s.eachHidden(at, tree, func(f *Field, at *failure.Path, in map[string]any) bool {
		if value, ok := in[f.Name]; ok && empty(value) {
			delete(in, f.Name)
			out[at.Text(failure.StoredNames)] = true
		}
		return true
	})
	return out
}

// empty reports whether a value clears its field. An object with only nulls is empty too.
func empty(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	case map[string]any:
		for _, e := range v {
			if e != nil {
				return false
			}
		}
		return true
	}
	return false
}

// ClearEmpty replaces empty texts and lists of write-only fields in a merge patch by null, which clears the field. It
// keeps empty maps and objects, which change nothing in a merge patch.
func (s *Shape) ClearEmpty(patch map[string]any) {
	s.eachHidden(nil, patch, func(f *Field, _ *failure.Path, in map[string]any) bool {
		value, ok := in[f.Name]
		if _, isMap := value.(map[string]any); ok && !isMap && empty(value) {
			in[f.Name] = nil
		}
		return true
	})
}

// Sent describes what a spec does with write-only fields besides setting them. The keys are stored paths. Cleared has
// the fields that the spec clears. Added has the maps to which the spec only adds entries; their stored entries are
// kept. See [Violations.TakeMerged].
type Sent struct{ Cleared, Added map[string]bool }

// KeepWriteOnly copies write-only fields from old to next, unless next sets or clears them. For a map in sent.Added, it
// copies the entries that next does not have. It does not copy fields of an object that next does not have.
func (s *Shape) KeepWriteOnly(next, old map[string]any, at *failure.Path, sent Sent) {
	if !s.Hides {
		return
	}
	for name, f := range s.fields {
		was, had := old[name]
		now, has := next[name]
		inside := at.Field(f.Field)
		switch {
		case !had:
		case f.WriteOnly:
			path := inside.Text(failure.StoredNames)
			if !has && !sent.Cleared[path] {
				next[name] = f.project(was)
			} else if entries, isMap := now.(map[string]any); isMap && sent.Added[path] {
				before, _ := was.(map[string]any)
				next[name] = jsontree.Merged(before, entries)
			}
		case f.shape != nil:
			inner, ok1 := now.(map[string]any)
			before, ok2 := was.(map[string]any)
			if ok1 && ok2 {
				f.shape.KeepWriteOnly(inner, before, inside, sent)
			}
		}
	}
}

// GivesWriteOnly reports whether a spec sets all write-only fields, so that no stored value is needed. A cleared field
// does not count as set. A field with mergeInto need not be set.
func (s *Shape) GivesWriteOnly(at *failure.Path, tree map[string]any, sent Sent) bool {
	return s.eachHidden(at, tree, func(f *Field, at *failure.Path, in map[string]any) bool {
		_, has := in[f.Name]
		return f.MergeInto != "" || has && !sent.Added[at.Text(failure.StoredNames)]
	})
}

// Shown returns a copy of a tree with only those fields that the shape knows and that are not write-only.
func (s *Shape) Shown(tree map[string]any) map[string]any {
	out := s.Project(tree)
	s.takeHidden(out)
	return out
}
