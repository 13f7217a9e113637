package kind

import (
	"fmt"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/jsontree"
)

// The write-only fields of a sensitive kind lie in a record of their own, see
// [backend.Key.Sensitive]. Reads of the resource do not read it. A write does, to keep the values that it
// leaves out.

// Unseal adds the values of the record r to the spec; nil means that there is no record. A value in
// the resource itself is newer and wins: a catalogue in which the field was not write-only has
// stored it there.
func (st *State) Unseal(k *Kind, r *backend.Resource) error {
	if r == nil {
		return nil
	}
	raw, err := backend.DecodeBody(r.Body)
	if err != nil {
		return err
	}
	if st.Sealed, err = jsontree.Parse(string(raw)); err != nil {
		return fmt.Errorf("stored sensitive values: %w: %w", backend.ErrUnreadable, err)
	}
	known := jsontree.Clone(st.Sealed).(map[string]any)
	st.Spec, st.stored.spec = jsontree.Merged(k.Spec.takeHidden(known), st.Spec), ""
	return nil
}

// Seal returns the record with the sensitive values, and the state without them.
func (st *State) Seal(k *Kind) (*State, []byte, error) {
	rest := st.WithSpec(jsontree.Clone(st.Spec).(map[string]any))
	sealed := map[string]any{}
	if st.Sealed != nil {
		sealed = jsontree.Clone(st.Sealed).(map[string]any)
		k.Spec.takeHidden(sealed)
		prune(sealed)
	}
	raw, err := jsontree.Append([]byte{backend.BodyJSON}, jsontree.Merged(sealed, k.Spec.takeHidden(rest.Spec)))
	if err != nil {
		return nil, nil, fmt.Errorf("sensitive values: %w", err)
	}
	return rest, raw, nil
}

// prune removes empty objects.
func prune(tree map[string]any) {
	for name, value := range tree {
		if inner, ok := value.(map[string]any); ok {
			if prune(inner); len(inner) == 0 {
				delete(tree, name)
			}
		}
	}
}

// takeHidden removes the write-only fields from a tree and returns them in a tree of
// the same structure.
func (s *Shape) takeHidden(tree map[string]any) map[string]any {
	out := map[string]any{}
	if !s.Hides {
		return out
	}
	for name, f := range s.fields {
		value, ok := tree[name]
		if !ok {
			continue
		}
		if f.WriteOnly {
			out[name] = value
			delete(tree, name)
		} else if inner, isObject := value.(map[string]any); isObject && f.shape != nil {
			if hidden := f.shape.takeHidden(inner); len(hidden) > 0 {
				out[name] = hidden
			}
		}
	}
	return out
}
