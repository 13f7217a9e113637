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
	// Group is the group of APIVersion, the apiVersion of manifests; it may be empty.
	Group, APIVersion string
	// Verbs that the gateway offers for the kind, like GET and LIST. If it is empty, the client
	// tries all.
	Verbs []string
	// Controlled says that a controller decides when resources of the kind are ready.
	Controlled bool
	// Fields of spec and status. An object comes before its fields.
	Fields []Field
	// FilterableFields are the fields that filters can name.
	FilterableFields []FilterableField
	// Columns of tables, beside those that all tables have.
	Columns []Column
	// References, Description, SubKinds and Expires are only set by [Client.DescribedKinds].
	References  []Reference
	Description string
	SubKinds    []string
	Expires     bool
}

// Field is one field of a kind, by its path, like "spec.resource.mtu". All paths of a kind have
// the names of manifests, spec and status; APIPath has the names of the API.
type Field struct {
	Path, APIPath, Type string
	List                bool
	// ManifestAt is the top-level key of a manifest that holds the field; if it is
	// empty, the field is in the manifest's spec.
	ManifestAt string
	// MergeInto is the field of the same object into which this map's entries are
	// merged; empty for none.
	MergeInto  string
	EnumValues []EnumValue
	WriteOnly  bool
	// The following fields are only set by [Client.DescribedKinds].
	Description         string
	Required, Immutable bool
	ListType            string
	Keys                []string
	Limits              Limits
	// Default is the value that applies if the field is absent, as JSON in stored form.
	Default json.RawMessage
	// DeprecationReason says why the field should not be used; empty if it is not
	// deprecated.
	DeprecationReason string
}

// EnumValue is one value of an enum: its name in the API, and the form that
// manifests have.
type EnumValue struct{ Name, Stored, Description string }

// Limits of a value; nil and empty mean no limit.
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

// FilterableField is a field that filters can use, and orders if it is sortable.
type FilterableField struct {
	Path     string
	Sortable bool
}

// Column of a table shows the value at a path, or all values if the path goes through a
// list.
type Column struct {
	Title, Path string
	Wide        bool
}

// Reference is a field that names resources of a kind.
type Reference struct {
	Path, Kind, Field, Inverse string
	Guarded                    bool
}

// Field returns the field at a path, nil if there is none.
func (k Kind) Field(path string) *Field {
	for i := range k.Fields {
		if k.Fields[i].Path == path {
			return &k.Fields[i]
		}
	}
	return nil
}

// HasConditions reports whether the kind's status has conditions with a type and a
// status.
func (k Kind) HasConditions() bool {
	has := func(path, of string, list bool) bool {
		f := k.Field(path)
		return f != nil && f.List == list && (of == "" || f.Type == of)
	}
	return has("status.conditions", "", true) && has("status.conditions.type", "String", false) &&
		has("status.conditions.status", "String", false)
}

// Is reports whether name is one of the kind's names: singular, plural or short, in any
// case.
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

// Kinds returns the catalogue without what only [Client.DescribedKinds] sets.
func (c *Client) Kinds(ctx context.Context) ([]Kind, error) { return c.kinds(ctx, false) }

// DescribedKinds returns the whole catalogue with all descriptions.
func (c *Client) DescribedKinds(ctx context.Context) ([]Kind, error) { return c.kinds(ctx, true) }

func (c *Client) kinds(ctx context.Context, described bool) ([]Kind, error) {
	var out struct{ Kinds []Kind }
	err := c.Do(ctx, kindsDocument, map[string]any{"described": described}, &out)
	for _, k := range out.Kinds {
		k.inStore()
	}
	return out.Kinds, err
}

// KindState is what changes about a kind while a catalogue is served.
type KindState struct {
	// StoredBytes is the total size of the kind's stored bodies; nil if the gateway does not have
	// the kind in memory or the caller may not LIST and GET all of it.
	StoredBytes *int64
	// Service owns the resources; nil if the gateway stores them itself.
	Service *KindService
}

// KindService is the resource service that owns a kind, and the state of the gateway's mirror of
// the kind.
type KindService struct {
	Name, State string
	LagSeconds  float64
	// Followed says that the service sends changes. Otherwise the gateway compares the kind with it
	// from time to time.
	Followed bool
}

// KindStates returns the states of the kinds, by their names.
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

// inStore replaces API paths in a kind by stored paths, except in its fields.
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

// APIPath returns the API's path of a field.
func (k Kind) APIPath(path string) string {
	if f := k.Field(path); f != nil && f.APIPath != "" {
		return f.APIPath
	}
	return path
}

// ControlKind puts a kind under a controller, or ends that. The setting is stored, so
// it applies to all gateways on the store. ControlKind returns whether a controller has
// the kind now.
func (c *Client) ControlKind(ctx context.Context, kind string, controlled bool) (bool, error) {
	var out struct{ UpdateKind struct{ Kind Kind } }
	err := c.Do(
		ctx, updateKindDocument, map[string]any{"input": map[string]any{"kind": kind, "controlled": controlled}}, &out,
	)
	return out.UpdateKind.Kind.Controlled, err
}

// Kind returns the kind with a name: singular, plural or short, in any case.
func (c *Client) Kind(ctx context.Context, name string) (Kind, error) {
	kinds, err := c.Kinds(ctx)
	if err != nil {
		return Kind{}, err
	}
	return FindKind(kinds, name)
}

// FindKind returns the kind with a name: singular, plural or short, in any case. The error names
// the known kinds.
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

// Value returns the value at a path of a decoded body, {"spec": ..., "status": ...}. If the path
// goes through lists, it returns all values in order.
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

// Body decodes spec and status into a body for [Value]. Integers become int64 and other
// numbers float64.
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
