package kind

import (
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/jsontree"
)

// A write-only field is accepted and never shown, so a client that replaces a spec cannot send it
// back: a write that leaves the field out keeps its value. Null, and an empty text, list, map or
// object, clear it. Write-only fields do not occur inside lists.

// eachHidden visits the write-only fields of the objects in a tree, each with its path and the
// object that may hold its value. It stops and returns false as soon as visit does.
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

// TakeCleared removes from a spec the values that clear write-only fields, and returns the paths of these
// fields.
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

// empty reports whether a value clears its field. Nulls in it are ignored.
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

// ClearEmpty replaces empty texts and lists of write-only fields in a patch by null, which clears
// the field. An empty map or object in a patch changes nothing and stays.
func (s *Shape) ClearEmpty(patch map[string]any) {
	s.eachHidden(nil, patch, func(f *Field, _ *failure.Path, in map[string]any) bool {
		value, ok := in[f.Name]
		if _, isMap := value.(map[string]any); ok && !isMap && empty(value) {
			in[f.Name] = nil
		}
		return true
	})
}

// Sent says what a spec does to write-only fields besides setting them, by stored paths: Cleared
// are the fields that it clears, Added the maps whose stored entries stay (see
// [Violations.TakeMerged]).
type Sent struct{ Cleared, Added map[string]bool }

// KeepWriteOnly copies the write-only fields of old into next, except those that next
// has or clears. A map in sent.Added gets the stored entries that next lacks. If next
// leaves out an object, the object's fields are not copied.
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

// GivesWriteOnly reports whether a spec sets every write-only field, so that no stored value is
// kept. A cleared field does not count as set. A map that is merged into another is not required.
func (s *Shape) GivesWriteOnly(at *failure.Path, tree map[string]any, sent Sent) bool {
	return s.eachHidden(at, tree, func(f *Field, at *failure.Path, in map[string]any) bool {
		_, has := in[f.Name]
		return f.MergeInto != "" || has && !sent.Added[at.Text(failure.StoredNames)]
	})
}

// Shown returns a copy of the tree without write-only fields and names that the shape does not have.
func (s *Shape) Shown(tree map[string]any) map[string]any {
	out := s.Project(tree)
	s.takeHidden(out)
	return out
}
