package kind

import (
	"fmt"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/jsontree"
)

// The write-only fields of a sensitive kind are stored in a separate record: see [backend.Key.Sensitive]. Reads of the
// resource do not read this record. Writes read it, to keep the values that they do not set.

// Unseal adds the values in the sensitive record r to the spec. r may be nil. The resource itself may have a value of a
// write-only field, which was stored before the field became write-only. This value is newer and is kept.
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

// Seal returns the state without sensitive values, and the body of the sensitive record with these values.
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

// takeHidden removes the write-only fields from a tree, and returns them in a tree of the same structure.
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
