package client

import (
	"context"
	"maps"
	"slices"
	"strings"
)

// DeleteRequest describes a deletion.
type DeleteRequest struct {
	Kind Kind `json:"-"`
	// Namespace is the namespace of the resource; empty means the default namespace.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// ExpectedRevision, if not empty, is the revision that the resource must have.
	ExpectedRevision string `json:"expectedRevision,omitempty"`
	// DryRun returns what would happen, without deleting anything.
	DryRun bool `json:"dryRun"`
}

// Deletion is the state of a deletion, or after a dry run the state that it would have.
type Deletion struct {
	// State is DELETED; PENDING if other resources prevent the deletion; or FINALIZING if only finalizers do.
	State string
	// Namespace and UID belong to the resource. Namespace is nil for GLOBAL kinds. Both are unset if the resource
	// cannot be read.
	Namespace *string
	UID       string
	// Finalizers are the finalizers of the resource. After a dry run they are set only if the state is FINALIZING and
	// the kind offers GET.
	Finalizers []string
	// BlockedBy has the first 100 references that prevent the deletion.
	BlockedBy References
}

// Delete deletes a resource. If the resource cannot be deleted yet, Delete requests its deletion.
func (c *Client) Delete(ctx context.Context, req DeleteRequest) (Deletion, error) {
	k := req.Kind
	if err := k.offers("DELETE"); err != nil {
		return Deletion{}, err
	}
	req.Namespace = k.scoped(req.Namespace)
	var out struct {
		Delete struct {
			Deletion
			Resource *struct{ Metadata Metadata }
			Preview  *Preview
		}
	}
	err := c.Do(ctx, k.document(deleteTemplate), map[string]any{"input": req}, &out)
	d := out.Delete.Deletion
	switch r, p := out.Delete.Resource, out.Delete.Preview; {
	case r != nil:
		d.Namespace = r.Metadata.Namespace
		d.UID = r.Metadata.UID
		d.Finalizers = r.Metadata.Finalizers
	case p != nil:
		d.Namespace, d.UID = p.Namespace, p.UID
		if d.State == "FINALIZING" && k.Offers("GET") { // a preview has no finalizers
			var now *Resource
			if now, err = c.Get(ctx, k, req.Namespace, req.Name, ""); now != nil {
				d.Finalizers = now.Metadata.Finalizers
			}
		}
	}
	return d, err
}

// MetadataPatch is a change of the labels, annotations and finalizers of a resource.
type MetadataPatch struct {
	Kind Kind
	// Namespace is the namespace of the resource; empty means the default namespace.
	Namespace, Name string
	// ExpectedRevision is the revision that the resource must have.
	ExpectedRevision string
	// Labels and Annotations have the values to set, by key. A nil value removes the key.
	Labels, Annotations map[string]*string
	// AddFinalizers and RemoveFinalizers are the finalizers to add and to remove.
	AddFinalizers, RemoveFinalizers []string
	// DryRun returns what would happen, without storing anything.
	DryRun bool
}

// PatchMetadata changes metadata if the resource has the expected revision. It returns the new revision, empty after a
// dry run. After deletion was requested, only finalizers can be removed.
func (c *Client) PatchMetadata(ctx context.Context, req MetadataPatch) (revision string, err error) {
	k := req.Kind
	if err := k.offers("PATCH"); err != nil {
		return "", err
	}
	if len(req.AddFinalizers)+len(req.RemoveFinalizers) > 0 {
		if err := k.offers("FINALIZE"); err != nil {
			return "", err
		}
	}
	in := k.within(
		req.Namespace, map[string]any{"name": req.Name, "expectedRevision": req.ExpectedRevision, "dryRun": req.DryRun},
	)
	for name, pairs := range map[string]map[string]*string{"labels": req.Labels, "annotations": req.Annotations} {
		var list []map[string]any
		for _, key := range slices.Sorted(maps.Keys(pairs)) {
			list = append(list, map[string]any{"key": key, "value": pairs[key]})
		}
		if len(list) > 0 {
			in[name] = list
		}
	}
	for name, list := range map[string][]string{
		"addFinalizers":    req.AddFinalizers,
		"removeFinalizers": req.RemoveFinalizers,
	} {
		if len(list) > 0 {
			in[name] = list
		}
	}
	return c.written(ctx, k.document(metadataTemplate), in)
}

// scoped returns the namespace, or "" for a GLOBAL kind.
func (k Kind) scoped(namespace string) string {
	if k.Scope == "GLOBAL" {
		return ""
	}
	return namespace
}

// within adds the namespace to variables, unless it is empty or the kind is GLOBAL.
func (k Kind) within(namespace string, in map[string]any) map[string]any {
	namespace = k.scoped(namespace)
	if namespace != "" {
		in["namespace"] = namespace
	}
	return in
}

// StatusRequest is a request to replace the status of a resource.
type StatusRequest struct {
	Kind Kind
	// Namespace is the namespace of the resource; empty means the default namespace.
	Namespace, Name string
	// ExpectedRevision is the revision that the resource must have.
	ExpectedRevision string
	// Status is the new status in stored form, as [Client.Get] returns it.
	Status map[string]any
	// DryRun returns what would happen, without storing anything.
	DryRun bool
}

// UpdateStatus replaces a status if the resource has the expected revision. It returns the new revision, empty after a
// dry run.
func (c *Client) UpdateStatus(ctx context.Context, req StatusRequest) (revision string, err error) {
	k := req.Kind
	if err := k.offers("STATUS"); err != nil {
		return "", err
	}
	in := map[string]any{
		"name":             req.Name,
		"expectedRevision": req.ExpectedRevision,
		"status":           k.input("status", req.Status),
		"dryRun":           req.DryRun,
	}
	return c.written(ctx, k.document(statusTemplate), k.within(req.Namespace, in))
}

// written executes a mutation and returns the new revision.
func (c *Client) written(ctx context.Context, document string, in map[string]any) (revision string, err error) {
	var out struct {
		Update struct {
			Written struct{ Metadata struct{ Revision string } }
		}
	}
	err = c.Do(ctx, document, map[string]any{"input": in}, &out)
	return out.Update.Written.Metadata.Revision, err
}

// input converts a value from stored form to an input of the API: maps become lists of entries, and fields get their
// names of the API.
func (k Kind) input(path string, value any) any {
	switch v := value.(type) {
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = k.input(path, e)
		}
		return out
	case map[string]any:
		if f := k.Field(path); f != nil && f.Type == "MapEntry" {
			out := make([]any, 0, len(v))
			for key, e := range v {
				out = append(out, map[string]any{"key": key, "value": e})
			}
			return out
		}
		out := make(map[string]any, len(v))
		for key, e := range v {
			at := path + "." + key
			name := k.APIPath(at)
			out[name[strings.LastIndex(name, ".")+1:]] = k.input(at, e)
		}
		return out
	}
	return value
}
