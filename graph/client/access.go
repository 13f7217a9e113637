package client

import "context"

// AccessTarget is the target of a question about rights: a resource; without a name, some resource of the namespace;
// without a namespace too, any resource of the kind; the zero value is for verbs of no kind.
type AccessTarget struct {
	// Kind is the name of a kind; empty for none.
	Kind string `json:"kind,omitempty" yaml:"kind,omitempty"`
	// Namespace is empty for GLOBAL kinds and for any; with a name it means the default one.
	Namespace string `json:"namespace,omitempty" yaml:"namespace,omitempty"`
	Name      string `json:"name,omitempty" yaml:"name,omitempty"`
}

// AccessGrant gives users and groups a verb.
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

// AccessGrants returns the ways in which anybody may use a verb on a target, as far as the caller may see them.
func (c *Client) AccessGrants(ctx context.Context, verb string, t AccessTarget) ([]AccessGrant, error) {
	variables := struct {
		AccessTarget
		Verb string `json:"verb"`
	}{t, verb}
	var out struct{ AccessGrants []AccessGrant }
	err := c.Do(ctx, accessGrantsDocument, variables, &out)
	return out.AccessGrants, err
}

// AllowedVerbs are the verbs that the caller may use on some resources of a kind.
type AllowedVerbs struct {
	// Kind is empty for the verbs of no kind.
	Kind  string   `json:"kind" yaml:"kind"`
	Verbs []string `json:"verbs" yaml:"verbs"`
}

// Allowed returns the verbs that the caller may use on each kind, and last the verbs of no kind.
func (c *Client) Allowed(ctx context.Context) ([]AllowedVerbs, error) {
	var out struct {
		Kinds  []AllowedVerbs
		Access []string
	}
	err := c.Do(ctx, allowedDocument, nil, &out)
	return append(out.Kinds, AllowedVerbs{Verbs: out.Access}), err
}
