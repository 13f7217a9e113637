package client

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"
)

// Kind is one kind of the gateway's catalogue.
type Kind struct {
	Name, Singular, Plural, Scope string
	// Verbs are what the gateway offers of the kind, like GET and LIST. None stands
	// for all: then the gateway says what it does not offer.
	Verbs  []string
	Fields []Field
}

// Field is one field of a kind, by its path, like "spec.resource.mtu".
type Field struct {
	Path, Type string
	List       bool
}

// hasConditions says whether the kind reports conditions in its status as this
// client knows them.
func (k Kind) hasConditions() bool {
	has := func(f Field) bool {
		return slices.ContainsFunc(k.Fields, func(g Field) bool {
			return g.Path == f.Path && g.List == f.List && (f.Type == "" || g.Type == f.Type)
		})
	}
	return has(Field{Path: "status.conditions", List: true}) &&
		has(Field{Path: "status.conditions.type", Type: "String"}) && has(Field{Path: "status.conditions.status", Type: "String"})
}

// offers is an error if the gateway does not offer a verb of the kind.
func (k Kind) offers(verb string) error {
	if len(k.Verbs) == 0 || slices.Contains(k.Verbs, verb) {
		return nil
	}
	last := len(k.Verbs) - 1
	known := k.Verbs[last]
	if last > 0 {
		known = strings.Join(k.Verbs[:last], ", ") + " and " + known
	}
	return fmt.Errorf("kind %s does not offer %s; it offers %s", k.Name, verb, known)
}

// fields are what is read of a resource of the kind.
func (k Kind) fields() string {
	if !k.hasConditions() {
		return resourceFields
	}
	return resourceFields + " ... on " + k.Name + " { status { conditions { type status } } }"
}

// Resource is what every kind has.
type Resource struct {
	Kind     string
	Metadata struct {
		Namespace *string
		Name      string
		Revision  string
		CreatedAt time.Time
		Labels    []Label
	}
	// Manifest in the format that was asked for.
	Manifest string
	// Status has the conditions of kinds that report them.
	Status struct{ Conditions []Condition }
}

// Condition is one aspect of a resource's state.
type Condition struct{ Type, Status string }

// Condition returns the status of a condition, empty if there is none.
func (r *Resource) Condition(kind string) string {
	for _, c := range r.Status.Conditions {
		if c.Type == kind {
			return c.Status
		}
	}
	return ""
}

// Label is one label of a resource.
type Label struct{ Key, Value string }

// Format of a manifest.
type Format string

// The formats.
const (
	YAML Format = "YAML"
	JSON Format = "JSON"
)

// Kinds returns the catalogue.
func (c *Client) Kinds(ctx context.Context) ([]Kind, error) {
	var out struct{ Kinds []Kind }
	err := c.Do(ctx, `{ kinds { name singular plural scope verbs fields { path type list } } }`, nil, &out)
	return out.Kinds, err
}

// UnknownKindError names the kinds that a gateway has.
type UnknownKindError struct {
	Name  string
	Known []Kind
}

func (e *UnknownKindError) Error() string {
	names := make([]string, len(e.Known))
	for i, k := range e.Known {
		names[i] = k.Plural
	}
	return fmt.Sprintf("kind %q is not known; known kinds: %s", e.Name, strings.Join(names, ", "))
}

// Kind finds a kind by its name, singular or plural, in any case.
func (c *Client) Kind(ctx context.Context, name string) (Kind, error) {
	kinds, err := c.Kinds(ctx)
	if err != nil {
		return Kind{}, err
	}
	for _, k := range kinds {
		if strings.EqualFold(name, k.Name) || strings.EqualFold(name, k.Singular) || strings.EqualFold(name, k.Plural) {
			return k, nil
		}
	}
	return Kind{}, &UnknownKindError{Name: name, Known: kinds}
}

const resourceFields = `kind metadata { namespace name revision createdAt labels { key value } } manifest(format: $format)`

// Get returns one resource, nil if there is none. An empty namespace means the default one.
func (c *Client) Get(ctx context.Context, k Kind, namespace, name string, format Format) (*Resource, error) {
	var out struct{ Resource *Resource }
	vars := map[string]any{"kind": k.Name, "name": name, "format": format}
	if namespace != "" && k.Scope != "GLOBAL" {
		vars["namespace"] = namespace
	}
	err := c.Do(ctx, `query($kind: String!, $namespace: String, $name: String!, $format: ManifestFormat!) {
		resource(kind: $kind, namespace: $namespace, name: $name) { `+k.fields()+` }
	}`, vars, &out)
	return out.Resource, err
}

// pageSize of List.
const pageSize = 200

// ListRequest says which resources List walks.
type ListRequest struct {
	Kind Kind
	// Namespace narrows the list; empty means all.
	Namespace string
	// Selector are tests of labels that must all hold.
	Selector []LabelTest
	// Format of the manifests.
	Format Format
}

// LabelOperator is how a label is tested.
type LabelOperator string

// The operators. LabelIn and LabelNotIn take values; a resource without the label
// is not in any.
const (
	LabelIn     LabelOperator = "in"
	LabelNotIn  LabelOperator = "notIn"
	LabelExists LabelOperator = "exists"
	LabelAbsent LabelOperator = "absent"
)

// LabelTest is a test of the label with a key.
type LabelTest struct {
	Key      string
	Operator LabelOperator
	Values   []string
}

// filter is the test as the API has it.
func (t LabelTest) filter() map[string]any {
	switch t.Operator {
	case LabelIn, LabelNotIn:
		return map[string]any{"key": t.Key, string(t.Operator): t.Values}
	}
	return map[string]any{"key": t.Key, "exists": t.Operator != LabelAbsent}
}

// List walks resources in the order of their names, page by page. The
// iteration ends at the first error.
func (c *Client) List(ctx context.Context, req ListRequest) iter.Seq2[*Resource, error] {
	k := req.Kind
	args, params := "first: $first, after: $after", "$first: Int!, $after: String, $format: ManifestFormat!"
	vars := map[string]any{"first": pageSize, "format": req.Format}
	if req.Namespace != "" && k.Scope != "GLOBAL" {
		args, params, vars["namespace"] = args+", namespace: $namespace", params+", $namespace: String", req.Namespace
	}
	if len(req.Selector) > 0 {
		labels := make([]map[string]any, len(req.Selector))
		for i, t := range req.Selector {
			labels[i] = t.filter()
		}
		args, params, vars["filter"] = args+", filter: $filter", params+", $filter: "+k.Name+"Filter", map[string]any{"labels": labels}
	}
	query := fmt.Sprintf(`query(%s) { list: %s(%s) { nodes { %s } pageInfo { hasNextPage endCursor } } }`, params, k.Plural, args, k.fields())
	return func(yield func(*Resource, error) bool) {
		if err := k.offers("LIST"); err != nil {
			yield(nil, err)
			return
		}
		for {
			var out struct {
				List struct {
					Nodes    []*Resource
					PageInfo struct {
						HasNextPage bool
						EndCursor   *string
					}
				}
			}
			err := c.Do(ctx, query, vars, &out)
			if size := vars["first"].(int); tooLarge(err) && size > 1 {
				vars["first"] = size / 2 // the resources are large: fewer at a time
				continue
			}
			if err != nil {
				yield(nil, err)
				return
			}
			for _, r := range out.List.Nodes {
				if !yield(r, nil) {
					return
				}
			}
			if !out.List.PageInfo.HasNextPage || out.List.PageInfo.EndCursor == nil {
				return
			}
			vars["after"] = *out.List.PageInfo.EndCursor
		}
	}
}

// tooLarge says that an answer is more than the client reads, or than the gateway gives.
func tooLarge(err error) bool {
	var told *Error
	return errors.Is(err, errTooLarge) || errors.As(err, &told) && told.Extensions.Code == "LIMIT_EXCEEDED" && slices.Contains([]string{"limit-answer", "limit-objects", "limit-held"}, told.Extensions.Key)
}

// ApplyRequest is one manifest document.
type ApplyRequest struct {
	Manifest string
	// Namespace is used where the manifest names none; empty means the default one.
	Namespace string
	// ExpectedRevision is a precondition; empty for none.
	ExpectedRevision string
	// CreateOnly fails with ALREADY_EXISTS where the resource is there.
	CreateOnly bool
	// DryRun says what would happen and writes nothing.
	DryRun bool
}

// Applied says what an apply did: CREATED, UPDATED or UNCHANGED.
type Applied struct {
	Outcome  string
	Warnings []Warning
	// Resource is nil for a dry run that would create.
	Resource *Resource
}

// Warning is what a caller should know though a change was made.
type Warning struct{ Code, Message, Field string }

// Apply makes one resource what the manifest says.
func (c *Client) Apply(ctx context.Context, req ApplyRequest) (*Applied, error) {
	in := map[string]any{"manifest": req.Manifest, "dryRun": req.DryRun, "createOnly": req.CreateOnly}
	if req.Namespace != "" {
		in["namespace"] = req.Namespace
	}
	if req.ExpectedRevision != "" {
		in["expectedRevision"] = req.ExpectedRevision
	}
	var out struct{ ApplyManifest *Applied }
	err := c.Do(ctx, `mutation($input: ApplyManifestInput!) {
		applyManifest(input: $input) { outcome warnings { code message field } resource { kind metadata { namespace name revision createdAt } } }
	}`, map[string]any{"input": in}, &out)
	return out.ApplyManifest, err
}

// Delete removes one resource. An empty revision removes it whatever it is; an
// empty namespace means the default one.
func (c *Client) Delete(ctx context.Context, k Kind, namespace, name, revision string) error {
	if err := k.offers("DELETE"); err != nil {
		return err
	}
	in := map[string]any{"name": name}
	if namespace != "" && k.Scope != "GLOBAL" {
		in["namespace"] = namespace
	}
	if revision != "" {
		in["expectedRevision"] = revision
	}
	return c.Do(ctx, fmt.Sprintf(`mutation($input: Delete%[1]sInput!) { delete%[1]s(input: $input) { state } }`, k.Name), map[string]any{"input": in}, nil)
}
