package client

import "context"

// AccessTarget says what rights are asked for: a resource, any resource of a namespace (no Name),
// any resource of a kind (no Namespace either), or, for verbs without a kind, nothing (the zero
// value).
type AccessTarget struct {
	// Kind is the name of a kind; empty for none.
	Kind string `json:"kind,omitempty" yaml:"kind,omitempty"`
	// Namespace is empty for GLOBAL kinds and for any namespace. If Name is set, empty means
	// the default namespace.
	Namespace string `json:"namespace,omitempty" yaml:"namespace,omitempty"`
	Name      string `json:"name,omitempty" yaml:"name,omitempty"`
}

// AccessGrant is one way in which users and groups have a verb.
type AccessGrant struct {
	// Binding and Role are nil for the administrators' group of the configuration.
	Binding *string `json:"binding" yaml:"binding"`
	Role    *string `json:"role" yaml:"role"`
	// Rule is the number of the rule in the role, from 0; nil if the caller may not see the role.
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

// AccessGrants returns the ways in which a verb on a target is granted, as far as the caller may
// see them.
func (c *Client) AccessGrants(ctx context.Context, verb string, t AccessTarget) ([]AccessGrant, error) {
	variables := struct {
		AccessTarget
		Verb string `json:"verb"`
	}{t, verb}
	var out struct{ AccessGrants []AccessGrant }
	err := c.Do(ctx, accessGrantsDocument, variables, &out)
	return out.AccessGrants, err
}

// AllowedVerbs are the verbs that the caller may use on at least some resources of a
// kind.
type AllowedVerbs struct {
	// Kind is empty for the verbs that have no kind.
	Kind  string   `json:"kind" yaml:"kind"`
	Verbs []string `json:"verbs" yaml:"verbs"`
}

// Allowed returns the verbs that the caller may use on each kind, and last those that have no
// kind.
func (c *Client) Allowed(ctx context.Context) ([]AllowedVerbs, error) {
	var out struct {
		Kinds  []AllowedVerbs
		Access []string
	}
	err := c.Do(ctx, allowedDocument, nil, &out)
	return append(out.Kinds, AllowedVerbs{Verbs: out.Access}), err
}
