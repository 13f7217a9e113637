package kind

import (
	"context"
	"encoding/base64"
	"maps"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/jsontree"
)

// A field with mergeInto is a map that offers another way to write a second map of the same object. For example,
// stringData of a Secret is merged into data. The entries of the field are checked, moved into the second map, and
// stored there. Both fields are write-only, so readers see no difference.

// TakeMerged moves the entries of fields with mergeInto into their targets, and adds violations. cleared has the paths
// of the fields that the spec clears. TakeMerged returns the paths of targets that the spec neither sets nor clears.
// Such a target also keeps its stored entries, see [Shape.KeepWriteOnly]. A value that is not a map stays in place;
// validation refuses it later.
func (v *Violations) TakeMerged(
	ctx context.Context, s *Shape, at *failure.Path, tree map[string]any, cleared map[string]bool,
) map[string]bool {
	added := map[string]bool{}
	if !s.merges {
		return added
	}
	for _, from := range s.ordered {
		entries, isMap := tree[from.Name].(map[string]any)
		if !isMap {
			continue
		}
		if from.MergeInto == "" {
			if from.shape != nil {
				maps.Copy(added, v.TakeMerged(ctx, from.shape, at.Field(from.Field), entries, cleared))
			}
			continue
		}
		into := s.fields[from.MergeInto]
		given, sent := tree[into.Name].(map[string]any)
		if _, other := tree[into.Name]; other && !sent {
			continue
		}
		delete(tree, from.Name)
		before := len(v.found)
		v.field(ctx, from, at.Field(from.Field), entries, prior{})
		if len(v.found) > before {
			continue // the entries were refused; do not refuse them again in the target
		}
		if target := at.Field(into.Field).Text(failure.StoredNames); !sent && !cleared[target] {
			added[target] = true
		}
		tree[into.Name] = jsontree.Merged(given, encoded(from, into, entries))
	}
	return added
}

// TakeMergedPatch moves the entries of fields with mergeInto out of a merge patch. It returns them as a second merge
// patch, which must be applied after the first. A null entry removes the entry of the target.
func (v *Violations) TakeMergedPatch(
	ctx context.Context, s *Shape, at *failure.Path, patch map[string]any,
) map[string]any {
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
			given := maps.Clone(inner) // null removes an entry
			if maps.DeleteFunc(given, func(_ string, value any) bool { return value == nil }); len(given) > 0 {
				v.field(ctx, f, at.Field(f.Field), given, prior{})
			}
			into, ok := out[f.MergeInto].(map[string]any)
			if !ok {
				into = map[string]any{}
				out[f.MergeInto] = into
			}
			maps.Copy(into, encoded(f, s.fields[f.MergeInto], inner))
		case f.shape != nil:
			if later := v.TakeMergedPatch(ctx, f.shape, at.Field(f.Field), inner); len(later) > 0 {
				out[f.Name] = later
			}
		}
	}
	return out
}

// encoded returns entries of the field from in the form that the field into stores. Values that are not strings are not
// changed; validation refuses them.
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
