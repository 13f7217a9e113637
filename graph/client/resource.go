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
	// Spec and Status in stored form; nil if they are absent or if only a manifest or
	// names were requested.
	Spec   json.RawMessage `json:"specJSON"`
	Status json.RawMessage `json:"statusJSON"`
	// Manifest in the requested format.
	Manifest string
}

// Metadata is the metadata of a resource.
type Metadata struct {
	// Namespace is nil for GLOBAL kinds.
	Namespace           *string
	Name, UID, Revision string
	// Generation counts the changes of the spec, from 1.
	Generation           int64
	CreatedAt, UpdatedAt time.Time
	// UpdatedBy is the caller who last changed anything that callers set; empty for an anonymous caller.
	UpdatedBy string
	// ExpiresAt is when the resource expires; nil if it does not.
	ExpiresAt *time.Time
	// DeletionRequestedAt is when the pending deletion was requested; nil for none.
	DeletionRequestedAt *time.Time
	// Finalizers keep a resource from being deleted.
	Finalizers []string
	Labels     []Pair
	// Annotations and Description are set if spec and status are.
	Annotations []Pair
	Description string
}

// Condition is one aspect of a resource's state.
type Condition struct {
	Type, Status, Reason, Message string
	// LastTransitionTime is when the status last changed; empty if unknown.
	LastTransitionTime string
	// ObservedGeneration is the generation that the controller had seen when it reported the
	// condition; 0 if unknown.
	ObservedGeneration int64
}

// Conditions returns the conditions of the status. Values that are not conditions are left out.
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

// Condition returns the condition with a type, the zero value if there is none.
func (r *Resource) Condition(of string) Condition {
	for _, c := range r.Conditions() {
		if c.Type == of {
			return c
		}
	}
	return Condition{}
}

// Decode decodes JSON. Integers become int64 and other numbers float64.
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

// Format of a manifest.
type Format string

// The formats.
const (
	YAML Format = "YAML"
	JSON Format = "JSON"
)

// parts returns the variables of resourceParts: for a manifest if format is set,
// otherwise for names alone or the whole resource.
func parts(format Format, names bool) map[string]any {
	out := map[string]any{"whole": format == "" && !names, "manifest": format != "" && !names, "format": nil}
	if format != "" {
		out["format"] = format
	}
	return out
}

// Get returns one resource, nil if it does not exist. With a format the resource has
// only its manifest, without one everything else. An empty namespace means the default
// one.
func (c *Client) Get(ctx context.Context, k Kind, namespace, name string, format Format) (*Resource, error) {
	var out struct{ Resource *Resource }
	vars := k.within(namespace, parts(format, false))
	vars["kind"], vars["name"] = k.Name, name
	err := c.Do(ctx, getDocument, vars, &out)
	return out.Resource, err
}

// ApplyRequest is one manifest document.
type ApplyRequest struct {
	Manifest string `json:"manifest"`
	// Namespace is used if the manifest has none; empty means the default one.
	Namespace string `json:"namespace,omitempty"`
	// ExpectedRevision is a precondition; empty for none.
	ExpectedRevision string `json:"expectedRevision,omitempty"`
	// IgnoreRevision disregards the revision in the manifest. It excludes
	// ExpectedRevision.
	IgnoreRevision bool `json:"ignoreRevision"`
	// FieldManager becomes the owner of the manifest's labels and annotations. Nil means the
	// gateway's default. With "" the manifest replaces all labels and annotations, and they have no
	// owner.
	FieldManager *string `json:"fieldManager,omitempty"`
	// CreateOnly makes the request fail with ALREADY_EXISTS if the resource exists.
	CreateOnly bool `json:"createOnly"`
	// DryRun returns what would happen without storing anything.
	DryRun bool `json:"dryRun"`
}

// Applied is the result of an apply. Outcome is CREATED, UPDATED or UNCHANGED.
type Applied struct {
	Outcome  string
	Warnings []Warning
	// Resource as it is stored now, with its manifest in YAML. It is nil with DryRun, and if the
	// caller may not read it; there is a warning [NotReadable] then.
	Resource *Resource
	// Preview is the resource as it would be stored, with its manifest in YAML. It is nil
	// without DryRun, and if the caller may not read it.
	Preview *Preview
}

// Preview is a resource as an apply would store it; for a dry run of a deletion, as it is.
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

// Waiting is the code of a warning that names something a resource waits for.
const Waiting = "WAITING"

// NotReadable is the code of the warning that the caller has created a resource but may not
// read it.
const NotReadable = "NOT_READABLE"

// Apply creates or updates a resource as its manifest says.
func (c *Client) Apply(ctx context.Context, req ApplyRequest) (*Applied, error) {
	var out struct{ ApplyManifest *Applied }
	err := c.Do(ctx, applyDocument, map[string]any{"input": req}, &out)
	return out.ApplyManifest, err
}
