package service

import (
	"slices"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
)

// Reference is one place in a resource that names another.
type Reference struct {
	// Reference is the declared one.
	descriptor.Reference
	// Key of what is named, which may be missing.
	Key backend.Key
}

// References are those that a stored resource has by the declarations of its
// kind, in the order of the declarations, no two equal.
func (r *Reader) References(stored *backend.Resource) ([]Reference, error) {
	k, err := r.kinds.find(stored.Kind)
	if err != nil {
		return nil, err
	}
	st, err := stateOf(stored)
	if err != nil {
		return nil, translate(err, stored.Key)
	}
	var out []Reference
	root := st.root()
	for _, declared := range k.References {
		k.rows.index(declared.Path).walk(root, 0, func(v any) {
			name, _ := v.(string)
			ref := Reference{Reference: declared, Key: backend.Key{Kind: declared.Kind, Namespace: stored.Namespace, Name: name}}
			if name != "" && !slices.Contains(out, ref) {
				out = append(out, ref)
			}
		})
	}
	return out, nil
}
