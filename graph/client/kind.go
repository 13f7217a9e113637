package client

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Kind is one kind of the gateway's catalogue.
type Kind struct {
	Name, Singular, Plural, Scope string
	// ShortNames are other names of the kind.
	ShortNames []string
	// Group is the group in APIVersion; it may be empty. APIVersion is the apiVersion of manifests.
	Group, APIVersion string
	// Verbs are the verbs that the gateway offers for the kind, such as GET and LIST. If there are none, the client
	// does not check verbs.
	Verbs []string
	// Controlled reports whether a controller decides when resources of the kind are ready.
	Controlled bool
	// Fields are the fields of spec and status. An object comes before its fields.
	Fields []Field
	// FilterableFields are the fields that filters accept.
	FilterableFields []FilterableField
	// Columns are the columns of tables, in addition to those of all kinds.
	Columns []Column
	// References, Description, SubKinds and Expires are only set by [Client.DescribedKinds].
	References  []Reference
	Description string
	SubKinds    []string
	Expires     bool
}

// Field is a field of a kind. Path is its path in manifests, spec and status, such as "spec.resource.mtu". APIPath is
// its path in the API.
type Field struct {
	Path, APIPath, Type string
	List                bool
	// ManifestAt is the top-level key of a manifest under which the field is written; empty if it is written in the
	// spec.
	ManifestAt string
	// MergeInto is the field of the same object into which the entries of this map are merged; empty if they are not.
	MergeInto  string
	EnumValues []EnumValue
	WriteOnly  bool
	// The following fields are only set by [Client.DescribedKinds].
	Description         string
	Required, Immutable bool
	ListType            string
	Keys                []string
	Limits              Limits
	// Default is the effective value of an absent field, as JSON in stored form.
	Default json.RawMessage
	// DeprecationReason is the reason of the deprecation; empty if the field is not deprecated.
	DeprecationReason string
}

// EnumValue is a value of an enum. Name is its name in the API, and Stored its form in manifests.
type EnumValue struct{ Name, Stored, Description string }

// Limits are the limits of a value. A nil or empty field means no limit.
type Limits struct {
	MinLength, MaxLength         *int
	Pattern, Format              string
	Min, Max                     *float64
	In                           []string
	MinItems, MaxItems           *int
	Unique                       bool
	MinProperties, MaxProperties *int
	KeyMinLength, KeyMaxLength   *int
	KeyPattern                   string
}

// FilterableField is a field that filters accept, and orders too if it is sortable.
type FilterableField struct {
	Path     string
	Sortable bool
}

// Column is a column of a table. It shows the value at a path, or all values if the path passes through a list.
type Column struct {
	Title, Path string
	Wide        bool
}

// Reference is a field with the names of resources of a kind.
type Reference struct {
	Path, Kind, Field, Inverse string
	Guarded                    bool
}

// Field returns the field at a path; nil if there is none.
func (k Kind) Field(path string) *Field {
	for i := range k.Fields {
		if k.Fields[i].Path == path {
			return &k.Fields[i]
		}
	}
	return nil
}

// HasConditions reports whether the status has conditions: a list of objects with a type and a status.
func (k Kind) HasConditions() bool {
	has := func(path, of string, list bool) bool {
		f := k.Field(path)
		return f != nil && f.List == list && (of == "" || f.Type == of)
	}
	return has("status.conditions", "", true) && has("status.conditions.type", "String", false) &&
		has("status.conditions.status", "String", false)
}

// Is reports whether name is a name of the kind: singular, plural or short. Case is ignored.
func (k Kind) Is(name string) bool {
	return slices.ContainsFunc(append([]string{k.Name, k.Singular, k.Plural}, k.ShortNames...), func(own string) bool {
		return strings.EqualFold(own, name)
	})
}

// Offers reports whether the gateway offers a verb for the kind.
func (k Kind) Offers(verb string) bool { return len(k.Verbs) == 0 || slices.Contains(k.Verbs, verb) }

// offers returns an error if the gateway does not offer a verb for the kind.
func (k Kind) offers(verb string) error {
	if k.Offers(verb) {
		return nil
	}
	last := len(k.Verbs) - 1
	known := k.Verbs[last]
	if last > 0 {
		known = strings.Join(k.Verbs[:last], ", ") + " and " + known
	}
	return fmt.Errorf("kind %s does not offer %s; it offers %s", k.Name, verb, known)
}

// Kinds returns the kinds of the catalogue, without the fields that only [Client.DescribedKinds] sets.
func (c *Client) Kinds(ctx context.Context) ([]Kind, error) { return c.kinds(ctx, false) }

// DescribedKinds returns the kinds of the catalogue with all fields set.
func (c *Client) DescribedKinds(ctx context.Context) ([]Kind, error) { return c.kinds(ctx, true) }

func (c *Client) kinds(ctx context.Context, described bool) ([]Kind, error) {
	var out struct{ Kinds []Kind }
	err := c.Do(ctx, kindsDocument, map[string]any{"described": described}, &out)
	for _, k := range out.Kinds {
		k.inStore()
	}
	return out.Kinds, err
}

// KindState has the properties of a kind that change while a catalogue is served.
type KindState struct {
	// StoredBytes is the total size of the stored bodies. It is nil if the gateway does not keep the kind in memory, or
	// if the caller may not LIST and GET all resources.
	StoredBytes *int64
	// Service is the service that owns the resources; nil if the gateway stores them itself.
	Service *KindService
}

// KindService describes the resource service that owns a kind, and the state of the gateway's copy.
type KindService struct {
	Name, State string
	LagSeconds  float64
	// Followed reports whether the service sends changes. Otherwise the gateway compares its copy with the service from
	// time to time.
	Followed bool
}

// KindStates returns the states of all kinds, by name.
func (c *Client) KindStates(ctx context.Context) (map[string]KindState, error) {
	var out struct {
		Kinds []struct {
			Name string
			KindState
		}
	}
	if err := c.Do(ctx, kindStatesDocument, nil, &out); err != nil {
		return nil, err
	}
	states := map[string]KindState{}
	for _, k := range out.Kinds {
		states[k.Name] = k.KindState
	}
	return states, nil
}

// inStore converts names of the API to stored names, in the paths of the kind and in Keys and MergeInto of its fields.
// The paths of the fields themselves are not converted.
func (k Kind) inStore() {
	stored := map[string]string{} // by the paths of the API
	for _, f := range k.Fields {
		stored[f.APIPath] = f.Path
	}
	name := func(path string) string { return path[strings.LastIndex(path, ".")+1:] }
	for i := range k.Fields {
		f := &k.Fields[i]
		for n, key := range f.Keys {
			f.Keys[n] = name(stored[f.APIPath+"."+key])
		}
		if f.MergeInto != "" {
			f.MergeInto = name(stored[strings.TrimSuffix(f.APIPath, name(f.APIPath))+f.MergeInto])
		}
	}
	for i := range k.FilterableFields {
		k.FilterableFields[i].Path = stored[k.FilterableFields[i].Path]
	}
	for i := range k.Columns {
		k.Columns[i].Path = stored[k.Columns[i].Path]
	}
	for i := range k.References {
		k.References[i].Path = stored[k.References[i].Path]
	}
}

// APIPath returns the path that a field has in the API.
func (k Kind) APIPath(path string) string {
	if f := k.Field(path); f != nil && f.APIPath != "" {
		return f.APIPath
	}
	return path
}

// ControlKind gives a kind to a controller, or takes it back. The setting is stored, and so it applies to all gateways
// of the store. ControlKind returns whether a controller has the kind now.
func (c *Client) ControlKind(ctx context.Context, kind string, controlled bool) (bool, error) {
	var out struct{ UpdateKind struct{ Kind Kind } }
	err := c.Do(
		ctx, updateKindDocument, map[string]any{"input": map[string]any{"kind": kind, "controlled": controlled}}, &out,
	)
	return out.UpdateKind.Kind.Controlled, err
}

// Kind returns the kind with a name, see [Kind.Is].
func (c *Client) Kind(ctx context.Context, name string) (Kind, error) {
	kinds, err := c.Kinds(ctx)
	if err != nil {
		return Kind{}, err
	}
	return FindKind(kinds, name)
}

// FindKind returns the kind with a name, see [Kind.Is]. If there is none, the error names the known kinds.
func FindKind(kinds []Kind, name string) (Kind, error) {
	var known []string
	for _, k := range kinds {
		if k.Is(name) {
			return k, nil
		}
		known = append(known, k.Plural)
	}
	return Kind{}, fmt.Errorf("kind %q is not known; known kinds: %s", name, strings.Join(known, ", "))
}

// Value returns the values at a path of a decoded body {"spec": ..., "status": ...}. If the path passes through lists,
// there may be several values, in the order of the lists.
func Value(body any, path string) (values []any) {
	step, rest, more := strings.Cut(path, ".")
	switch v := body.(type) {
	case []any:
		for _, e := range v {
			values = append(values, Value(e, path)...)
		}
	case map[string]any:
		switch next, ok := v[step]; {
		case !ok || next == nil:
		case more:
			return Value(next, rest)
		default:
			if list, ok := next.([]any); ok {
				return list
			}
			return []any{next}
		}
	}
	return values
}

// Body decodes spec and status to a body for [Value]. Integers become int64, other numbers float64.
func (r *Resource) Body() (map[string]any, error) {
	out := map[string]any{}
	for name, raw := range map[string]json.RawMessage{"spec": r.Spec, "status": r.Status} {
		if len(raw) == 0 || string(raw) == "null" {
			continue
		}
		v, err := Decode(raw)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %s: %w", r.Kind, r.Metadata.Name, name, err)
		}
		out[name] = v
	}
	return out, nil
}
