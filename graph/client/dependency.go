package client

import (
	"cmp"
	"context"
	"time"
)

// References are the first references of a list, and their total number.
type References struct {
	// TotalCount is the number of all references that the caller may see.
	TotalCount int
	// HiddenCount is the number of referring resources that the caller may not see.
	HiddenCount int
	// Nodes have kind, namespace and name; those of a deletion also path, state and
	// guarded.
	Nodes []TreeNode
}

// TreeRequest describes a tree of dependencies.
type TreeRequest struct {
	// ID of the root.
	ID string `json:"id"`
	// Direction is DEPENDENCIES (the resources that the root refers to), DEPENDENTS (the resources that refer
	// to the root) or BOTH. Default: BOTH.
	Direction string `json:"direction"`
	// Depth is the number of levels, 1 to 10. Default: 3.
	Depth int `json:"depth"`
	// Blockers is the maximum number of references returned that keep the root from being
	// deleted.
	Blockers int `json:"blockers"`
}

// Tree holds the resources around a root, by their references.
type Tree struct {
	Root TreeNode `json:"root"`
	// Dependencies are the resources that the root refers to, level by level.
	Dependencies []TreeNode `json:"dependencies"`
	// Dependents are the resources that refer to the root, level by level.
	Dependents []TreeNode `json:"dependents"`
	// HiddenBlockers is the number of resources that keep the root from being deleted and
	// that the caller may not see.
	HiddenBlockers int `json:"hiddenBlockers,omitempty"`
	// BlockedBy are the references that keep the root from being deleted.
	BlockedBy References `json:"-"`
	// Truncated says that there is more than fits into a tree.
	Truncated bool `json:"truncated"`
}

// TreeNode is one resource of a tree, reached by one reference.
type TreeNode struct {
	ResourceID string `json:"resourceId"`
	Kind       string `json:"kind"`
	// Namespace is nil for GLOBAL kinds.
	Namespace *string `json:"namespace,omitempty"`
	Name      string  `json:"name"`
	// Level is the number of references between the root and this node.
	Level int `json:"level"`
	// From is the ResourceID of the previous node. From, Path, Guarded and State are empty for the
	// root.
	From string `json:"from,omitempty"`
	// Path of the reference in the kind that declares it, as the API names it.
	Path string `json:"path,omitempty"`
	// Guarded says that the target of the reference cannot be deleted while it is
	// referred to.
	Guarded bool `json:"guarded"`
	// State of the reference: MISSING, NOT_READY, DELETING or BOUND, depending on its target;
	// UNREADABLE if the resource that has the reference cannot be read. Empty if that resource has
	// been deleted since.
	State string `json:"state,omitempty"`
	// Cycle says that this resource is already on the way from the root. The tree ends
	// there.
	Cycle bool `json:"cycle"`
	// Resource is nil if it does not exist. JSON has it only if its deletion was
	// requested.
	Resource *TreeResource `json:"resource,omitzero"`
}

// TreeResource has only the time at which the deletion of a resource was requested.
type TreeResource struct {
	Metadata struct {
		DeletionRequestedAt *time.Time `json:"deletionRequestedAt"`
	} `json:"metadata"`
}

// IsZero reports whether there is no resource, or one whose deletion was not requested.
func (r *TreeResource) IsZero() bool { return r == nil || r.Metadata.DeletionRequestedAt == nil }

// Tree returns the resources around a root, nil if the root does not exist.
func (c *Client) Tree(ctx context.Context, req TreeRequest) (*Tree, error) {
	var out struct {
		DependencyTree *struct {
			Tree
			Held struct {
				Resource *struct{ BlockedBy References }
			}
		}
	}
	req.Direction, req.Depth = cmp.Or(req.Direction, "BOTH"), cmp.Or(req.Depth, 3)
	err := c.Do(ctx, treeDocument, req, &out)
	if out.DependencyTree == nil {
		return nil, err
	}
	tree := &out.DependencyTree.Tree
	if r := out.DependencyTree.Held.Resource; r != nil {
		tree.BlockedBy, tree.HiddenBlockers = r.BlockedBy, r.BlockedBy.HiddenCount
	}
	return tree, err
}
