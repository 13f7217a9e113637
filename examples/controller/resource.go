package main

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/sluicegw/sluice/graph/client"
)

// profile says whether resources of a kind are to be kept in step with a cloud: its
// specs have a management policy, its statuses have conditions, and both can be written.
func profile(k client.Kind) bool {
	return k.Field("spec.managementPolicy") != nil && k.HasConditions() && k.Offers("WATCH") && k.Offers("FINALIZE") && k.Offers("STATUS")
}

// Values of a spec, in stored form.
const (
	unmanaged = "unmanaged"
	detach    = "detach"
)

// spec is what all kinds of the profile have in their specs. The resource and the filter
// differ from kind to kind.
type spec struct {
	ManagementPolicy    string
	CloudCredentialsRef struct{ SecretName, CloudName string }
	Import              struct {
		ID     string
		Filter map[string]any
	}
	ManagedOptions struct{ OnDelete string }
	Resource       map[string]any
	ResyncPeriod   string
}

// status is what all of them have in their statuses.
type status struct {
	ID           string
	Conditions   []client.Condition
	LastSyncTime time.Time
}

// resource is a resource as the controller needs it.
type resource struct {
	key    key
	kind   client.Kind
	meta   client.Metadata
	spec   spec
	status status
	// stored is the status as it was read: what the controller does not write is kept.
	stored map[string]any
	// needs are what the resource refers to.
	needs []need
	// anew: its import may have changed since it was looked at, so that what the status
	// shows may be another object.
	anew bool
	// blocked: others rely on it.
	blocked bool
	// cloud with the credentials of the spec; nil until it is needed.
	cloud *cloud
}

// need is a reference of a resource.
type need struct {
	Path, Name, State string
	Guarded           bool
	Resource          *struct {
		Status struct{ ID string } `json:"statusJSON"`
	}
}

// readDocument reads all that the controller needs of a resource of whatever kind.
const readDocument = `query Read($kind: String!, $namespace: String, $name: String!) {
  resource(kind: $kind, namespace: $namespace, name: $name) {
    metadata { name uid revision generation deletionRequestedAt finalizers }
    specJSON
    statusJSON
    dependencies(first: 1000) { nodes { path name state guarded resource { statusJSON } } }
    blockedBy(first: 1) { nodes { name } }
  }
}`

// read returns a resource as it is now, nil if there is none.
func (c *controller) read(ctx context.Context, k key) (*resource, error) {
	var out struct {
		Resource *struct {
			Metadata     client.Metadata
			Spec         json.RawMessage `json:"specJSON"`
			Status       json.RawMessage `json:"statusJSON"`
			Dependencies struct{ Nodes []need }
			BlockedBy    struct{ Nodes []struct{} }
		}
	}
	vars := map[string]any{"kind": k.Kind, "name": k.Name}
	if k.Namespace != "" {
		vars["namespace"] = k.Namespace
	}
	if err := c.gateway.Do(ctx, readDocument, vars, &out); err != nil || out.Resource == nil {
		return nil, err
	}
	got := out.Resource
	r := &resource{key: k, kind: c.kinds[k.Kind], meta: got.Metadata, needs: got.Dependencies.Nodes, blocked: len(got.BlockedBy.Nodes) > 0, stored: map[string]any{}}
	err := json.Unmarshal(got.Spec, &r.spec)
	if len(got.Status) > 0 {
		err = errors.Join(err, json.Unmarshal(got.Status, &r.status), json.Unmarshal(got.Status, &r.stored))
	}
	return r, err
}

// waits says whether the gateway waits for what the resource refers to. Its conditions
// say so, and a change tells when it is over.
func (r *resource) waits() bool {
	return slices.ContainsFunc(r.needs, func(n need) bool { return n.State != "BOUND" })
}

// condition returns the condition of a type, the zero value if there is none.
func (r *resource) condition(of string) client.Condition {
	for _, c := range r.status.Conditions {
		if c.Type == of {
			return c
		}
	}
	return client.Condition{}
}

// looksAnew says whether the object of a resource that is not managed is to be found by
// its import, whatever the status shows. The reason Progressing is the gateway's too,
// which has not looked at the object.
func (r *resource) looksAnew() bool {
	p := r.condition(progressing)
	looked := p.ObservedGeneration == r.meta.Generation && p.Reason != reasonProgressing
	return r.spec.ManagementPolicy == unmanaged && !looked && (r.spec.Import.ID == "" || r.spec.Import.ID != r.status.ID)
}

// period is how often the resource is looked at though nothing has changed; 0 is never.
func (r *resource) period(otherwise time.Duration) time.Duration {
	if d, err := time.ParseDuration(r.spec.ResyncPeriod); err == nil {
		return d
	}
	return otherwise
}

// wanted is what the object of a managed resource is to be: its spec with ids in the
// place of names.
func (r *resource) wanted() wish {
	w := wish{Owner: r.meta.UID, Uses: []string{}, Properties: r.resolved("spec.resource", r.spec.Resource)}
	if r.kind.Field("spec.resource.name") != nil && w.Properties["name"] == nil {
		w.Properties["name"] = r.meta.Name
	}
	for _, n := range r.needs {
		if id := n.id(); n.Guarded && id != "" && strings.HasPrefix(n.Path, "spec.resource.") && !slices.Contains(w.Uses, id) {
			w.Uses = append(w.Uses, id)
		}
	}
	return w
}

// id of what is referred to; empty for what has none, as a Secret.
func (n need) id() string {
	if n.Resource == nil {
		return ""
	}
	return n.Resource.Status.ID
}

// resolved is a part of a spec, with ids in the place of names.
func (r *resource) resolved(path string, part map[string]any) map[string]any {
	out := make(map[string]any, len(part))
	for name, value := range part {
		out[name] = r.resolve(path+"."+name, value)
	}
	return out
}

func (r *resource) resolve(path string, value any) any {
	switch v := value.(type) {
	case map[string]any:
		return r.resolved(path, v)
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = r.resolve(path, e)
		}
		return out
	case string:
		for _, n := range r.needs {
			if id := n.id(); n.Path == path && n.Name == v && id != "" {
				return id
			}
		}
	}
	return value
}

// shown is the part of an object that the status of the kind has fields for.
func shown(k client.Kind, o *object) map[string]any {
	out := map[string]any{}
	if f := k.Field("status.resource.status"); f != nil && f.Type == "String" && !f.List {
		out["status"] = o.State
	}
	for name, value := range o.Properties {
		if v := fitting(k, "status.resource."+name, value); v != nil {
			out[name] = v
		}
	}
	return out
}

// fitting is a value as a field of the status can have it, nil for not at all.
func fitting(k client.Kind, path string, value any) any {
	f := k.Field(path)
	list, isList := value.([]any)
	switch {
	case f == nil || isList != f.List:
		return nil
	case !isList:
		return element(k, f, value)
	}
	out := []any{}
	for _, e := range list {
		if v := element(k, f, e); v != nil {
			out = append(out, v)
		}
	}
	return out
}

func element(k client.Kind, f *client.Field, value any) any {
	switch v := value.(type) {
	case string:
		if f.Type == "String" || len(f.EnumValues) > 0 {
			return v
		}
	case bool:
		if f.Type == "Boolean" {
			return v
		}
	case float64:
		if f.Type == "Int" || f.Type == "SafeInt" || f.Type == "Float" {
			return v
		}
	case map[string]any:
		out := map[string]any{}
		for name, e := range v {
			if fit := fitting(k, f.Path+"."+name, e); fit != nil {
				out[name] = fit
			}
		}
		if len(out) > 0 {
			return out
		}
	}
	return nil
}
