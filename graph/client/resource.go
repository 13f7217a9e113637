package client

import (
	"bytes"
	"context"
	"encoding/json"
	"strconv"
	"time"
)

// Resource is a resource of any kind.
type Resource struct {
	// ID is the global id.
	ID       string
	Kind     string
	SubKind  string
	Metadata Metadata
	// Spec and Status are the two parts in stored form. They are nil if they are absent, or if only a manifest or names
	// were requested.
	Spec   json.RawMessage `json:"specJSON"`
	Status json.RawMessage `json:"statusJSON"`
	// Manifest is the manifest in the requested format.
	Manifest string
}

// Metadata is the metadata of a resource.
type Metadata struct {
	// Namespace is nil for GLOBAL kinds.
	Namespace           *string
	Name, UID, Revision string
	// Generation is the number of changes of the spec, counted from 1.
	Generation           int64
	CreatedAt, UpdatedAt time.Time
	// UpdatedBy is the caller who last changed the spec or metadata; empty for an anonymous caller.
	UpdatedBy string
	// ExpiresAt is when the resource expires; nil if it does not.
	ExpiresAt *time.Time
	// DeletionRequestedAt is when deletion was requested; nil if it was not.
	DeletionRequestedAt *time.Time
	// Finalizers prevent the deletion of the resource.
	Finalizers []string
	Labels     []Pair
	// Annotations and Description are only set if spec and status are.
	Annotations []Pair
	Description string
}

// Condition is one aspect of a resource's state.
type Condition struct {
	Type, Status, Reason, Message string
	// LastTransitionTime is when the status last changed; empty if unknown.
	LastTransitionTime string
	// ObservedGeneration is the generation that the controller has seen; 0 if unknown.
	ObservedGeneration int64
}

// Conditions returns the conditions of the status. Values that are not conditions are ignored.
func (r *Resource) Conditions() []Condition {
	var status struct{ Conditions []json.RawMessage }
	if json.Unmarshal(r.Status, &status) != nil {
		return nil
	}
	var out []Condition
	for _, raw := range status.Conditions {
		var c Condition
		if json.Unmarshal(raw, &c) == nil && c.Type != "" {
			out = append(out, c)
		}
	}
	return out
}

// Condition returns the condition of a type; the zero value if there is none.
func (r *Resource) Condition(of string) Condition {
	for _, c := range r.Conditions() {
		if c.Type == of {
			return c
		}
	}
	return Condition{}
}

// Decode decodes JSON. Integers become int64, other numbers float64.
func Decode(raw []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	return numbers(v), nil
}

func numbers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, e := range v {
			v[key] = numbers(e)
		}
	case []any:
		for i, e := range v {
			v[i] = numbers(e)
		}
	case json.Number:
		if n, err := strconv.ParseInt(string(v), 10, 64); err == nil {
			return n
		}
		x, _ := v.Float64()
		return x
	}
	return v
}

// Pair is one label or annotation of a resource.
type Pair struct{ Key, Value string }

// DefaultNamespace is the namespace of a resource if none is given.
const DefaultNamespace = "default"

// Format is the format of a manifest.
type Format string

// The values of [Format].
const (
	YAML Format = "YAML"
	JSON Format = "JSON"
)

// parts returns the variables for resourceParts. If format is set, a manifest is selected; otherwise names alone if
// names is set, or else the whole resource.
func parts(format Format, names bool) map[string]any {
	out := map[string]any{"whole": format == "" && !names, "manifest": format != "" && !names, "format": nil}
	if format != "" {
		out["format"] = format
	}
	return out
}

// Get returns a resource; nil if it does not exist. With a format, only the manifest is returned, otherwise everything
// but the manifest. An empty namespace means the default namespace.
func (c *Client) Get(ctx context.Context, k Kind, namespace, name string, format Format) (*Resource, error) {
	var out struct{ Resource *Resource }
	vars := k.within(namespace, parts(format, false))
	vars["kind"], vars["name"] = k.Name, name
	err := c.Do(ctx, getDocument, vars, &out)
	return out.Resource, err
}

// ApplyRequest is a manifest to apply.
type ApplyRequest struct {
	Manifest string `json:"manifest"`
	// Namespace is used if the manifest has no namespace; empty means the default namespace.
	Namespace string `json:"namespace,omitempty"`
	// ExpectedRevision, if not empty, is the revision that the resource must have.
	ExpectedRevision string `json:"expectedRevision,omitempty"`
	// IgnoreRevision ignores the revision in the manifest. It cannot be combined with ExpectedRevision.
	IgnoreRevision bool `json:"ignoreRevision"`
	// FieldManager is the owner of the manifest's labels and annotations. Nil means the default of the gateway. If it
	// is "", the manifest replaces all labels and annotations, and they have no owner.
	FieldManager *string `json:"fieldManager,omitempty"`
	// CreateOnly returns the error ALREADY_EXISTS if the resource exists.
	CreateOnly bool `json:"createOnly"`
	// DryRun returns what would happen, without storing anything.
	DryRun bool `json:"dryRun"`
}

// Applied is the result of an apply. Outcome is CREATED, UPDATED or UNCHANGED.
type Applied struct {
	Outcome  string
	Warnings []Warning
	// Resource is the stored resource, with its manifest in YAML. It is nil after a dry run. It is also nil if the
	// caller may not read the resource; there is then a warning with the code [NotReadable].
	Resource *Resource
	// Preview is the resource as it would be stored, with its manifest in YAML. It is only set after a dry run, and if
	// the caller may read the resource.
	Preview *Preview
}

// Preview is a resource as an apply would store it. For the dry run of a deletion, it is the stored resource.
type Preview struct {
	Kind string
	// Namespace is nil for GLOBAL kinds.
	Namespace *string
	Name      string
	// UID is empty for a resource that does not exist.
	UID      string
	Manifest string
}

// Warning is a note about a change that succeeded.
type Warning struct{ Code, Message, Field string }

// Waiting is the code of a warning about something for which a resource waits.
const Waiting = "WAITING"

// NotReadable is the code of the warning that the caller has created a resource but may not read it.
const NotReadable = "NOT_READABLE"

// Apply creates or updates a resource by a manifest.
func (c *Client) Apply(ctx context.Context, req ApplyRequest) (*Applied, error) {
	var out struct{ ApplyManifest *Applied }
	err := c.Do(ctx, applyDocument, map[string]any{"input": req}, &out)
	return out.ApplyManifest, err
}
