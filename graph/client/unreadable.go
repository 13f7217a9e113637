package client

import "context"

// Unreadable is a stored resource that the gateway cannot read.
type Unreadable struct {
	Kind string
	// Namespace is empty for GLOBAL kinds.
	Namespace, Name string
	// Reason is what is wrong with the stored form, in stored names of fields.
	Reason string
}

// Unreadables returns the resources of a kind that the gateway cannot read, ordered by namespace and name. It returns
// at most 1,000. An empty namespace means all.
func (c *Client) Unreadables(ctx context.Context, k Kind, namespace string) ([]Unreadable, error) {
	var out struct{ Unreadables []Unreadable }
	err := c.Do(ctx, unreadablesDocument, inNamespace(k, namespace), &out)
	return out.Unreadables, err
}

// UnreadableCount returns the number of resources that are left out of lists and streams of a kind because the gateway
// cannot read them. An empty namespace means all.
func (c *Client) UnreadableCount(ctx context.Context, k Kind, namespace string) (int, error) {
	var out struct {
		Resources struct{ UnreadableCount int }
	}
	err := c.Do(ctx, unreadableCountDocument, inNamespace(k, namespace), &out)
	return out.Resources.UnreadableCount, err
}

// inNamespace returns the variables kind and namespace.
func inNamespace(k Kind, namespace string) map[string]any {
	vars := map[string]any{"kind": k.Name, "namespace": nil}
	if namespace != "" && k.Scope != "GLOBAL" {
		vars["namespace"] = namespace
	}
	return vars
}
