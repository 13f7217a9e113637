package client

import (
	"context"
	"encoding/json"
	"fmt"
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

// Delete removes one resource, and says how far that has come: DELETED.
func (c *Client) Delete(ctx context.Context, req DeleteRequest) (state string, err error) {
	k := req.Kind
	if err := k.offers("DELETE"); err != nil {
		return "", err
	}
	in := k.named(req.Namespace, req.Name)
	in["dryRun"] = req.DryRun
	if req.ExpectedRevision != "" {
		in["expectedRevision"] = req.ExpectedRevision
	}
	var out struct{ Delete struct{ State string } }
	err = c.Do(ctx, deleteDocument(k), map[string]any{"input": in}, &out)
	return out.Delete.State, err
}

func deleteDocument(k Kind) string {
	return fmt.Sprintf(`mutation($input: Delete%[1]sInput!) { delete: delete%[1]s(input: $input) { state } }`, k.Name)
}

// named is the part of an input that names a resource.
func (k Kind) named(namespace, name string) map[string]any {
	in := map[string]any{"name": name}
	if namespace != "" && k.Scope != "GLOBAL" {
		in["namespace"] = namespace
	}
	return in
}

// Status is the status of a resource as it is stored.
type Status struct {
	// Namespace is empty for GLOBAL kinds.
	Namespace, Name string
	// Revision that the status was read at.
	Revision string
	// Status is an object, or null.
	Status json.RawMessage
}

const statusDocument = `query($kind: String!, $namespace: String, $name: String!) {
	resource(kind: $kind, namespace: $namespace, name: $name) { metadata { namespace name revision } statusJSON }
}`

// Status returns the status of one resource, nil if there is no such resource. An empty
// namespace means the default one.
func (c *Client) Status(ctx context.Context, k Kind, namespace, name string) (*Status, error) {
	vars := k.named(namespace, name)
	vars["kind"] = k.Name
	var out struct {
		Resource *struct {
			Metadata struct {
				Namespace      *string
				Name, Revision string
			}
			StatusJSON json.RawMessage
		}
	}
	if err := c.Do(ctx, statusDocument, vars, &out); err != nil || out.Resource == nil {
		return nil, err
	}
	m := out.Resource.Metadata
	st := &Status{Name: m.Name, Revision: m.Revision, Status: out.Resource.StatusJSON}
	if m.Namespace != nil {
		st.Namespace = *m.Namespace
	}
	return st, nil
}

// StatusRequest replaces the status of one resource.
type StatusRequest struct {
	Kind Kind
	// Namespace of the name; empty means the default one.
	Namespace, Name string
	// ExpectedRevision is that at which the status was read.
	ExpectedRevision string
	// Status is an object in stored form, as [Client.Status] gives it.
	Status map[string]any
}

// UpdateStatus replaces a status at the expected revision, and returns the new one.
func (c *Client) UpdateStatus(ctx context.Context, req StatusRequest) (revision string, err error) {
	k := req.Kind
	if err := k.offers("STATUS"); err != nil {
		return "", err
	}
	in := k.named(req.Namespace, req.Name)
	in["expectedRevision"], in["status"] = req.ExpectedRevision, k.input("status", req.Status)
	var out struct {
		Update struct {
			Written struct{ Metadata struct{ Revision string } }
		}
	}
	err = c.Do(ctx, updateStatusDocument(k), map[string]any{"input": in}, &out)
	return out.Update.Written.Metadata.Revision, err
}

func updateStatusDocument(k Kind) string {
	return fmt.Sprintf(`mutation($input: Update%[1]sStatusInput!) {
	update: update%[1]sStatus(input: $input) { written: %[2]s { metadata { revision } } }
}`, k.Name, k.Singular)
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
		if k.isMap(path) {
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

func (k Kind) isMap(path string) bool {
	for _, f := range k.Fields {
		if f.Path == path {
			return f.Type == "MapEntry"
		}
	}
	return false
}
