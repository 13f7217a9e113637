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

// supported reports whether the controller is for resources of a kind: its
// specs have a management policy, its statuses have conditions, and the controller can write both.
func supported(k client.Kind) bool {
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
	LastSyncTime time.Time
}

// resource is a resource as the controller needs it.
type resource struct {
	client.Resource
	key    key
	kind   client.Kind
	spec   spec
	status status
	// stored is the status as it was read. Fields that the controller does not write are kept.
	stored map[string]any
	// needs are the references of the resource.
	needs []need
	// search: its import may have changed since the object was found, so that the status may show
	// another object.
	search bool
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

// readDocument reads what the controller needs of a resource of any kind.
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
			client.Resource
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
	r := &resource{Resource: got.Resource, key: k, kind: c.kinds[k.Kind], needs: got.Dependencies.Nodes, blocked: len(got.BlockedBy.Nodes) > 0, stored: map[string]any{}}
	err := json.Unmarshal(got.Spec, &r.spec)
	if len(got.Status) > 0 {
		err = errors.Join(err, json.Unmarshal(got.Status, &r.status), json.Unmarshal(got.Status, &r.stored))
	}
	return r, err
}

// waits reports whether the resource waits for others that it refers to. The gateway sets its conditions, and a change
// comes when the wait is over.
func (r *resource) waits() bool {
	return slices.ContainsFunc(r.needs, func(n need) bool { return n.State != "BOUND" })
}

// mustSearch reports whether to find the object of a resource that is not managed by
// its import, and not by its status. The gateway sets the reason Progressing as well, without a look at the object.
func (r *resource) mustSearch() bool {
	p := r.Condition(progressing)
	looked := p.ObservedGeneration == r.Metadata.Generation && p.Reason != reasonProgressing
	return r.spec.ManagementPolicy == unmanaged && !looked && (r.spec.Import.ID == "" || r.spec.Import.ID != r.status.ID)
}

// period returns how often to look at the resource if nothing changes; 0 is never.
func (r *resource) period(otherwise time.Duration) time.Duration {
	if d, err := time.ParseDuration(r.spec.ResyncPeriod); err == nil {
		return d
	}
	return otherwise
}

// wanted returns the object of a managed resource as it should be: its spec with ids in the
// place of names.
func (r *resource) wanted() request {
	w := request{Owner: r.Metadata.UID, Uses: []string{}, Properties: r.resolved("spec.resource", r.spec.Resource)}
	if r.kind.Field("spec.resource.name") != nil && w.Properties["name"] == nil {
		w.Properties["name"] = r.Metadata.Name
	}
	for _, n := range r.needs {
		if id := n.id(); n.Guarded && id != "" && strings.HasPrefix(n.Path, "spec.resource.") && !slices.Contains(w.Uses, id) {
			w.Uses = append(w.Uses, id)
		}
	}
	return w
}

// id returns the id of the object referred to; empty for resources without one, like a Secret.
func (n need) id() string {
	if n.Resource == nil {
		return ""
	}
	return n.Resource.Status.ID
}

// resolved returns a part of a spec with ids in the place of names.
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

// shown returns the properties of an object for which the status of the kind has fields.
func shown(k client.Kind, o *object) map[string]any {
	out := map[string]any{}
	if f := k.Field("status.resource.status"); f != nil && f.Type == "String" && !f.List {
		out["status"] = o.State
	}
	for name, value := range o.Properties {
		if v := fit(k, "status.resource."+name, value); v != nil {
			out[name] = v
		}
	}
	return out
}

// fit returns a value as the field of the status can hold it; nil if it cannot.
func fit(k client.Kind, path string, value any) any {
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
			if fit := fit(k, f.Path+"."+name, e); fit != nil {
				out[name] = fit
			}
		}
		if len(out) > 0 {
			return out
		}
	}
	return nil
}
