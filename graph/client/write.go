package client

import (
	"context"
	"maps"
	"slices"
)

// DeleteRequest names a resource to delete.
type DeleteRequest struct {
	Kind Kind
	// Namespace of the name; empty means the default one.
	Namespace, Name string
	// ExpectedRevision is a precondition; empty deletes the resource whatever it is.
	ExpectedRevision string
	// DryRun says what would happen and deletes nothing.
	DryRun bool
}

// Deletion is how far a deletion has come; of a dry run how far it would.
type Deletion struct {
	// State is DELETED; PENDING while others rely on the resource; FINALIZING while nothing
	// but finalizers hold it.
	State string
	// Resource as it was, or as it is while its deletion waits; nil if that cannot be read.
	// Of its metadata it has namespace, name, uid and finalizers.
	Resource *Resource
	// BlockedBy are the first 100 references by which others rely on the resource.
	BlockedBy struct {
		TotalCount int
		Nodes      []Neighbour
	}
}

// Delete removes one resource, or requests that where it has to wait.
func (c *Client) Delete(ctx context.Context, req DeleteRequest) (Deletion, error) {
	k := req.Kind
	if err := k.offers("DELETE"); err != nil {
		return Deletion{}, err
	}
	in := k.named(req.Namespace, req.Name)
	in["dryRun"] = req.DryRun
	if req.ExpectedRevision != "" {
		in["expectedRevision"] = req.ExpectedRevision
	}
	var out struct{ Delete Deletion }
	err := c.Do(ctx, k.document(deleteTemplate), map[string]any{"input": in}, &out)
	return out.Delete, err
}

// MetadataPatch changes labels, annotations and finalizers of one resource.
type MetadataPatch struct {
	Kind Kind
	// Namespace of the name; empty means the default one.
	Namespace, Name string
	// ExpectedRevision is that at which the resource was read.
	ExpectedRevision string
	// Labels and Annotations that change, by their keys; nil removes one.
	Labels, Annotations map[string]*string
	// AddFinalizers and RemoveFinalizers change what holds the resource while its deletion waits.
	AddFinalizers, RemoveFinalizers []string
	// DryRun says what would happen and writes nothing.
	DryRun bool
}

// PatchMetadata changes metadata at the expected revision, and returns the new one. While a
// deletion waits, it can only remove finalizers.
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
	in := k.named(req.Namespace, req.Name)
	in["expectedRevision"], in["dryRun"] = req.ExpectedRevision, req.DryRun
	for name, pairs := range map[string]map[string]*string{"labels": req.Labels, "annotations": req.Annotations} {
		var list []map[string]any
		for _, key := range slices.Sorted(maps.Keys(pairs)) {
			list = append(list, map[string]any{"key": key, "value": pairs[key]})
		}
		if len(list) > 0 {
			in[name] = list
		}
	}
	for name, list := range map[string][]string{"addFinalizers": req.AddFinalizers, "removeFinalizers": req.RemoveFinalizers} {
		if len(list) > 0 {
			in[name] = list
		}
	}
	return c.written(ctx, k.document(metadataTemplate), in)
}

// named is the part of an input that names a resource.
func (k Kind) named(namespace, name string) map[string]any {
	in := map[string]any{"name": name}
	if namespace != "" && k.Scope != "GLOBAL" {
		in["namespace"] = namespace
	}
	return in
}

// StatusRequest replaces the status of one resource.
type StatusRequest struct {
	Kind Kind
	// Namespace of the name; empty means the default one.
	Namespace, Name string
	// ExpectedRevision is that at which the status was read.
	ExpectedRevision string
	// Status is an object in stored form, as [Client.Get] gives it.
	Status map[string]any
	// DryRun says what would happen and writes nothing.
	DryRun bool
}

// UpdateStatus replaces a status at the expected revision, and returns the new one.
func (c *Client) UpdateStatus(ctx context.Context, req StatusRequest) (revision string, err error) {
	k := req.Kind
	if err := k.offers("STATUS"); err != nil {
		return "", err
	}
	in := k.named(req.Namespace, req.Name)
	in["expectedRevision"], in["status"], in["dryRun"] = req.ExpectedRevision, k.input("status", req.Status), req.DryRun
	return c.written(ctx, k.document(statusTemplate), in)
}

// written does a mutation and returns the revision that it leaves behind.
func (c *Client) written(ctx context.Context, document string, in map[string]any) (revision string, err error) {
	var out struct {
		Update struct {
			Written struct{ Metadata struct{ Revision string } }
		}
	}
	err = c.Do(ctx, document, map[string]any{"input": in}, &out)
	return out.Update.Written.Metadata.Revision, err
}

// input is a stored value in the form that the API takes, which differs in maps only:
// there they are lists of entries.
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
			out[key] = k.input(path+"."+key, e)
		}
		return out
	}
	return value
}
