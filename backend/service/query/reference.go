package query

import (
	"slices"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
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
	k, err := r.kinds.Find(stored.Kind)
	if err != nil {
		return nil, err
	}
	st, err := kind.StateOf(stored)
	if err != nil {
		return nil, failure.Of(err, stored.Key)
	}
	var out []Reference
	root := st.Root()
	for _, declared := range k.References {
		k.Rows.Index(declared.Path).Walk(root, 0, func(v any) {
			name, _ := v.(string)
			ref := Reference{Reference: declared, Key: backend.Key{Kind: declared.Kind, Namespace: stored.Namespace, Name: name}}
			if name != "" && !slices.Contains(out, ref) {
				out = append(out, ref)
			}
		})
	}
	return out, nil
}
