package client

import (
	"cmp"
	"context"
	"time"
)

// References are the first references of a list, and their total number.
type References struct {
	// TotalCount is the number of all references from resources that the caller may see.
	TotalCount int
	// HiddenCount is the number of referring resources that the caller may not see.
	HiddenCount int
	// Nodes are the referring resources, with kind, namespace and name. For a deletion they also have path, state and
	// guarded.
	Nodes []TreeNode
}

// TreeRequest describes a tree of dependencies.
type TreeRequest struct {
	// ID is the global id of the root.
	ID string `json:"id"`
	// Direction is DEPENDENCIES (the resources that the root refers to), DEPENDENTS (the resources that refer
	// to the root) or BOTH. Default: BOTH.
	Direction string `json:"direction"`
	// Depth is the number of levels, 1 to 10. Default: 3.
	Depth int `json:"depth"`
	// Blockers is the maximum length of [Tree.BlockedBy].Nodes.
	Blockers int `json:"blockers"`
}

// Tree has the resources that are connected to a root by references.
type Tree struct {
	Root TreeNode `json:"root"`
	// Dependencies are the resources that the root refers to, level by level.
	Dependencies []TreeNode `json:"dependencies"`
	// Dependents are the resources that refer to the root, level by level.
	Dependents []TreeNode `json:"dependents"`
	// HiddenBlockers is the number of resources that prevent the deletion of the root and that the caller may not see.
	HiddenBlockers int `json:"hiddenBlockers,omitempty"`
	// BlockedBy are the references that prevent the deletion of the root.
	BlockedBy References `json:"-"`
	// Truncated reports whether some resources were left out because the tree is too large.
	Truncated bool `json:"truncated"`
}

// TreeNode is one resource of a tree, reached by one reference.
type TreeNode struct {
	ResourceID string `json:"resourceId"`
	Kind       string `json:"kind"`
	// Namespace is nil for GLOBAL kinds.
	Namespace *string `json:"namespace,omitempty"`
	Name      string  `json:"name"`
	// Level is the number of references from the root to this node.
	Level int `json:"level"`
	// From is the ResourceID of the previous node. From, Path, Guarded and State are not set for the root.
	From string `json:"from,omitempty"`
	// Path is the path of the reference in the referring kind, in names of the API.
	Path string `json:"path,omitempty"`
	// Guarded reports whether the target of the reference cannot be deleted while it is referred to.
	Guarded bool `json:"guarded"`
	// State is the state of the reference. It is MISSING, NOT_READY, DELETING or BOUND, depending on its target, or
	// UNREADABLE if the referring resource cannot be read. It is empty if the referring resource was deleted in the
	// meantime.
	State string `json:"state,omitempty"`
	// Cycle reports whether this resource is already on the path from the root. The tree does not continue below it.
	Cycle bool `json:"cycle"`
	// Resource is nil if the resource does not exist. In JSON it is left out unless deletion was requested.
	Resource *TreeResource `json:"resource,omitzero"`
}

// TreeResource is a resource of a tree. It only has the time when deletion was requested.
type TreeResource struct {
	Metadata struct {
		DeletionRequestedAt *time.Time `json:"deletionRequestedAt"`
	} `json:"metadata"`
}

// IsZero reports whether the resource does not exist, or its deletion was not requested.
func (r *TreeResource) IsZero() bool { return r == nil || r.Metadata.DeletionRequestedAt == nil }

// Tree returns the resources connected to a root; nil if the root does not exist.
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
