package client

import (
	"cmp"
	"context"
	"time"
)

// References are the first references of a list, and how many there are.
type References struct {
	// TotalCount is how many there are in all that the caller may see.
	TotalCount int
	// HiddenCount is how many more resources refer to it which the caller may not see.
	HiddenCount int
	// Nodes have kind, namespace and name; of a deletion also path, state and guarded.
	Nodes []TreeNode
}

// TreeRequest describes a tree of dependencies.
type TreeRequest struct {
	// ID of the root.
	ID string `json:"id"`
	// Direction is DEPENDENCIES (the resources that the root refers to), DEPENDENTS (the resources that refer
	// to the root) or BOTH. Default: BOTH.
	Direction string `json:"direction"`
	// Depth is how many levels are followed, 1 to 10. Default: 3.
	Depth int `json:"depth"`
	// Blockers is how many of the references are read that keep the root from being deleted.
	Blockers int `json:"blockers"`
}

// Tree holds the resources around a root, by their references.
type Tree struct {
	Root TreeNode `json:"root"`
	// Dependencies are the resources that the root refers to, level by level.
	Dependencies []TreeNode `json:"dependencies"`
	// Dependents are the resources that refer to the root, level by level.
	Dependents []TreeNode `json:"dependents"`
	// HiddenBlockers is how many resources rely on the root which the caller may not see.
	HiddenBlockers int `json:"hiddenBlockers,omitempty"`
	// BlockedBy are the references that keep the root from being deleted.
	BlockedBy References `json:"-"`
	// Truncated: there is more than a tree may hold.
	Truncated bool `json:"truncated"`
}

// TreeNode is one resource of a tree, reached by one reference.
type TreeNode struct {
	ResourceID string `json:"resourceId"`
	Kind       string `json:"kind"`
	// Namespace is nil for GLOBAL kinds.
	Namespace *string `json:"namespace,omitempty"`
	Name      string  `json:"name"`
	// Level counts the references from the root.
	Level int `json:"level"`
	// From is the ResourceID of the node before it. From, Path, Guarded and State are empty for the root.
	From string `json:"from,omitempty"`
	// Path of the reference in the kind that has it, in the names of the API.
	Path string `json:"path,omitempty"`
	// Guarded: the resource referred to must stay while others rely on it.
	Guarded bool `json:"guarded"`
	// State of the reference: MISSING, NOT_READY, DELETING or BOUND, by the resource that is referred to, or UNREADABLE
	// if the resource that refers to it cannot be read; also empty if that is gone since.
	State string `json:"state,omitempty"`
	// Cycle: it was met before on the way from the root, and is not followed again.
	Cycle bool `json:"cycle"`
	// Resource is nil if it is missing. JSON has it only if its deletion was requested.
	Resource *TreeResource `json:"resource,omitzero"`
}

// TreeResource has the time at which the deletion of a resource was requested, and nothing else.
type TreeResource struct {
	Metadata struct {
		DeletionRequestedAt *time.Time `json:"deletionRequestedAt"`
	} `json:"metadata"`
}

// IsZero reports whether there is no resource, or one whose deletion was not requested.
func (r *TreeResource) IsZero() bool { return r == nil || r.Metadata.DeletionRequestedAt == nil }

// Tree returns the resources around one, nil if it does not exist.
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
