package client

import "context"

// AccessTarget is what a caller wants to access. With Kind and Name it is a resource. With Kind and Namespace, it is
// any resource in the namespace. With Kind alone, it is any resource of the kind. The zero value is for verbs that have
// no kind.
type AccessTarget struct {
	// Kind is the name of a kind; empty for none.
	Kind string `json:"kind,omitempty" yaml:"kind,omitempty"`
	// Namespace is empty for GLOBAL kinds, and for any namespace. If Name is set, empty means the default namespace.
	Namespace string `json:"namespace,omitempty" yaml:"namespace,omitempty"`
	Name      string `json:"name,omitempty" yaml:"name,omitempty"`
}

// AccessGrant is a grant of a verb to users and groups.
type AccessGrant struct {
	// Binding and Role are nil for the group of administrators in the configuration.
	Binding *string `json:"binding" yaml:"binding"`
	Role    *string `json:"role" yaml:"role"`
	// Rule is the index of the rule in the role; nil if the caller may not see the role.
	Rule   *int     `json:"rule" yaml:"rule"`
	Users  []string `json:"users" yaml:"users"`
	Groups []string `json:"groups" yaml:"groups"`
}

// Access returns the verbs that the caller may use on a target.
func (c *Client) Access(ctx context.Context, t AccessTarget) ([]string, error) {
	var out struct{ Access []string }
	err := c.Do(ctx, accessDocument, t, &out)
	return out.Access, err
}

// AccessGrants returns the grants of a verb on a target. Grants that the caller may not see are left out.
func (c *Client) AccessGrants(ctx context.Context, verb string, t AccessTarget) ([]AccessGrant, error) {
	variables := struct {
		AccessTarget
		Verb string `json:"verb"`
	}{t, verb}
	var out struct{ AccessGrants []AccessGrant }
	err := c.Do(ctx, accessGrantsDocument, variables, &out)
	return out.AccessGrants, err
}

// AllowedVerbs are the verbs of a kind that the caller may use on at least some resources.
type AllowedVerbs struct {
	// Kind is empty for verbs that have no kind.
	Kind  string   `json:"kind" yaml:"kind"`
	Verbs []string `json:"verbs" yaml:"verbs"`
}

// Allowed returns the verbs that the caller may use, for each kind. The last element has the verbs without a kind.
func (c *Client) Allowed(ctx context.Context) ([]AllowedVerbs, error) {
	var out struct {
		Kinds  []AllowedVerbs
		Access []string
	}
	err := c.Do(ctx, allowedDocument, nil, &out)
	return append(out.Kinds, AllowedVerbs{Verbs: out.Access}), err
}
