package kind

import (
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/jsontree"
)

// A write-only field is accepted and never shown, so a client that replaces a spec cannot send it back: a
// write that leaves it out keeps it. Null, an empty text, list, map or object clear it. It stands in no list.

// eachHidden visits the write-only fields of the objects in a tree, in each with its path and the object that
// may have a value of it. It ends early if visit returns false, and so does visit's caller.
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

// empty reports whether a value clears the field that it is given for. Nulls in it
// are as if left out.
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

// ClearEmpty replaces empty texts and lists of write-only fields in a patch by null, which clears them. An
// empty map or object in a patch changes nothing.
func (s *Shape) ClearEmpty(patch map[string]any) {
	s.eachHidden(nil, patch, func(f *Field, _ *failure.Path, in map[string]any) bool {
		value, ok := in[f.Name]
		if _, isMap := value.(map[string]any); ok && !isMap && empty(value) {
			in[f.Name] = nil
		}
		return true
	})
}

// Sent is the effect of a spec on write-only fields besides their values, by their stored paths: which of them it
// clears, and which maps have entries that stay (see [Violations.TakeMerged]).
type Sent struct{ Cleared, Added map[string]bool }

// KeepWriteOnly copies into next the write-only fields that old has, that next
// leaves out and that are not cleared. If an object is left out, so are its fields.
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

// GivesWriteOnly reports whether a spec gives every write-only field, so that it keeps none of
// those that are stored. One that it clears is not given: nobody knows what was there. A map that goes into
// another one is not stored.
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
