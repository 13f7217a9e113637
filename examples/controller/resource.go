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

// supported reports whether the controller supports a kind. The spec of the kind must have a management policy, the
// status must have conditions, and the kind must offer the verbs WATCH, FINALIZE and STATUS.
func supported(k client.Kind) bool {
	return k.Field("spec.managementPolicy") != nil && k.HasConditions() && k.Offers("WATCH") && k.Offers("FINALIZE") && k.Offers("STATUS")
}

// These are stored values of spec.managementPolicy and spec.managedOptions.onDelete.
const (
	unmanaged = "unmanaged"
	detach    = "detach"
)

// spec has the fields that the specs of all supported kinds have. The fields in Resource and Filter differ from kind to
// kind.
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

// status has the fields that the controller reads from the status of every supported kind.
type status struct {
	ID           string
	LastSyncTime time.Time
}

// resource is a resource with the values that the controller decides on.
type resource struct {
	client.Resource
	key    key
	kind   client.Kind
	spec   spec
	status status
	// stored is the status as it was read. The controller keeps the fields that it does not write.
	stored map[string]any
	// needs are the references of the resource.
	needs []need
	// search is set if the import may have changed since the object was found. The status may then describe another
	// object.
	search bool
	// blocked is set if other resources prevent the deletion.
	blocked bool
	// cloud is the client with the credentials that the spec names; nil until it is needed.
	cloud *cloud
}

// need is a reference of a resource to another one.
type need struct {
	Path, Name, State string
	Guarded           bool
	Resource          *struct {
		Status struct{ ID string } `json:"statusJSON"`
	}
}

// readDocument selects what the controller needs from a resource of any kind.
const readDocument = `query Read($kind: String!, $namespace: String, $name: String!) {
  resource(kind: $kind, namespace: $namespace, name: $name) {
    metadata { name uid revision generation deletionRequestedAt finalizers }
    specJSON
    statusJSON
    dependencies(first: 1000) { nodes { path name state guarded resource { statusJSON } } }
    blockedBy(first: 1) { nodes { name } hiddenCount }
  }
}`

// read returns the present state of a resource; nil if it does not exist.
func (c *controller) read(ctx context.Context, k key) (*resource, error) {
	var out struct {
		Resource *struct {
			client.Resource
			Dependencies struct{ Nodes []need }
			BlockedBy    struct {
				Nodes       []struct{}
				HiddenCount int
			}
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
	r := &resource{
		Resource: got.Resource,
		key:      k,
		kind:     c.kinds[k.Kind],
		needs:    got.Dependencies.Nodes,
		blocked:  len(got.BlockedBy.Nodes) > 0 || got.BlockedBy.HiddenCount > 0,
		stored:   map[string]any{},
	}
	err := json.Unmarshal(got.Spec, &r.spec)
	if len(got.Status) > 0 {
		err = errors.Join(err, json.Unmarshal(got.Status, &r.status), json.Unmarshal(got.Status, &r.stored))
	}
	return r, err
}

// waits reports whether the resource waits for resources to which it refers. Meanwhile the gateway sets the conditions.
// When the resource no longer waits, the controller receives a change.
func (r *resource) waits() bool {
	return slices.ContainsFunc(r.needs, func(n need) bool { return n.State != "BOUND" })
}

// mustSearch reports whether the object of an unmanaged resource must be found by its import, because the id in the
// status may be out of date. The gateway also sets the reason Progressing, so that reason does not show that the import
// was used.
func (r *resource) mustSearch() bool {
	p := r.Condition(progressing)
	looked := p.ObservedGeneration == r.Metadata.Generation && p.Reason != reasonProgressing
	return r.spec.ManagementPolicy == unmanaged && !looked && (r.spec.Import.ID == "" || r.spec.Import.ID != r.status.ID)
}

// period returns how often to reconcile the resource if nothing changes; 0 means never.
func (r *resource) period(otherwise time.Duration) time.Duration {
	if d, err := time.ParseDuration(r.spec.ResyncPeriod); err == nil {
		return d
	}
	return otherwise
}

// wanted returns the object that a managed resource should have: its spec, with ids in place of the names of resources.
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

// id returns the id of the object to which the reference points; empty if the target has none, such as a Secret.
func (n need) id() string {
	if n.Resource == nil {
		return ""
	}
	return n.Resource.Status.ID
}

// resolved returns a part of a spec with ids in place of the names of resources.
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

// fit returns a value in the form for a field of the status; nil if the field cannot have it.
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
