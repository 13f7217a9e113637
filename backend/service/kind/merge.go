package kind

import (
	"context"
	"encoding/base64"
	"maps"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/jsontree"
)

// A map can be another way to write a second map of the same object: it is checked,
// its entries are put into the second one, and it is not stored. Both are write-only,
// so nobody sees the difference.

// TakeMerged moves the entries of such maps of a spec to where they belong, and notes
// what is wrong with them. It returns the paths of the maps that were not sent
// themselves: they keep their other entries, see [Shape.KeepWriteOnly]. cleared are
// the paths of fields that are cleared. A value that is no map stays, to be refused.
func (v *Violations) TakeMerged(ctx context.Context, s *Shape, path string, tree map[string]any, cleared map[string]bool) map[string]bool {
	var added map[string]bool
	s.eachMerged(path, tree, func(from, into *Field, at string, tree map[string]any) {
		given, sent := tree[into.Name].(map[string]any)
		entries, isMap := tree[from.Name].(map[string]any)
		if _, other := tree[into.Name]; !isMap || other && !sent {
			return
		}
		delete(tree, from.Name)
		before := len(v.found)
		if v.field(ctx, from, &location{in: &location{name: at}, name: from.Name}, entries, prior{}); len(v.found) > before {
			return // refused once, and not for where it goes too
		}
		if target := failure.Join(at, into.Name); !sent && !cleared[target] {
			if added == nil {
				added = map[string]bool{}
			}
			added[target] = true
		}
		tree[into.Name] = jsontree.Merged(given, encoded(from, into, entries))
	})
	return added
}

// TakeMergedPatch moves such maps out of a merge patch, into one of the same form that
// is applied after it. An entry that is null goes.
func (v *Violations) TakeMergedPatch(ctx context.Context, s *Shape, path string, patch map[string]any) map[string]any {
	if !s.merges {
		return nil
	}
	out := map[string]any{}
	for _, f := range s.ordered {
		value, given := patch[f.Name]
		inner, isMap := value.(map[string]any)
		switch {
		case given && value == nil && f.MergeInto != "":
			delete(patch, f.Name) // it has no entries of its own
		case !isMap:
		case f.MergeInto != "":
			delete(patch, f.Name)
			v.givenEntries(ctx, f, failure.Join(path, f.Name), inner)
			join(out, f.MergeInto, encoded(f, s.fields[f.MergeInto], inner))
		case f.shape != nil:
			if later := v.TakeMergedPatch(ctx, f.shape, failure.Join(path, f.Name), inner); len(later) > 0 {
				out[f.Name] = later
			}
		}
	}
	return out
}

// givenEntries checks the entries of a patch that are not null.
func (v *Violations) givenEntries(ctx context.Context, f *Field, path string, entries map[string]any) {
	given := maps.Clone(entries)
	maps.DeleteFunc(given, func(_ string, value any) bool { return value == nil })
	if len(given) > 0 {
		v.field(ctx, f, &location{name: path}, given, prior{})
	}
}

// join puts entries to those that a patch has under a name, nulls and all.
func join(patch map[string]any, name string, entries map[string]any) {
	if was, ok := patch[name].(map[string]any); ok {
		both := maps.Clone(was)
		maps.Copy(both, entries)
		entries = both
	}
	patch[name] = entries
}

// eachMerged visits the maps of a tree that go into others, in the order of the fields.
func (s *Shape) eachMerged(path string, tree map[string]any, visit func(from, into *Field, at string, tree map[string]any)) {
	if !s.merges {
		return
	}
	for _, f := range s.ordered {
		if _, ok := tree[f.Name]; ok && f.MergeInto != "" {
			visit(f, s.fields[f.MergeInto], path, tree)
		} else if inner, isObject := tree[f.Name].(map[string]any); isObject && f.shape != nil {
			f.shape.eachMerged(failure.Join(path, f.Name), inner, visit)
		}
	}
}

// encoded returns the entries of one map as the other stores them. Values other than texts are refused
// elsewhere.
func encoded(from, into *Field, entries map[string]any) map[string]any {
	if into.Constraint.Format != descriptor.FormatBase64 || from.Constraint.Format == descriptor.FormatBase64 {
		return entries
	}
	out := make(map[string]any, len(entries))
	for key, value := range entries {
		if text, ok := value.(string); ok {
			value = base64.StdEncoding.EncodeToString([]byte(text))
		}
		out[key] = value
	}
	return out
}
