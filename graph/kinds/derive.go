package kinds

import (
	_ "embed" // the template beside this file
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"text/template"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"

	"github.com/sluicegw/sluice/backend/descriptor"
)

// derivedSDL is the template of the part of the API that follows from the kinds. It is executed with
// a [derivation].
//
//go:embed derived.graphqls.tmpl
var derivedSDL string

// derivation is the data for the template derivedSDL.
type derivation struct {
	Kinds []derivedKind
	// Owners maps an author's type to the references whose derived fields it has.
	Owners map[string][]Reference
	// Inputs are the input types, patch types and filter types derived from object types.
	Inputs []*derivedInput
	// Enums are the enums that have a filter type, and EnumLists those whose lists have one.
	Enums, EnumLists map[string]bool
}

// derivedKind is the data of a kind for the template.
type derivedKind struct {
	*Kind
	// Derived are the references of the kind whose derived fields the kind has. Inverses are the references to the kind
	// for which it has a connection.
	Derived  []Reference
	Inverses []inverse
}

// inverse is a reference to a kind that gives the kind a connection of referrers.
type inverse struct {
	Reference
	From *Kind
	// AllNamespaces reports whether resources of all namespaces may refer to the kind.
	AllNamespaces bool
}

// mutation is a mutation of a kind in the template.
type mutation struct {
	derivedKind
	Mutation string
}

// derive returns the SDL of everything that is derived from the kinds.
func (s *Schema) derive() (*ast.SchemaDocument, error) {
	t, err := template.New("derived").Funcs(template.FuncMap{
		"text": quoted, "join": strings.Join, "orderValue": OrderValue, "summaryField": SummaryField,
	}).Parse(derivedSDL)
	if err != nil {
		return nil, err
	}
	d := deriveTypes(s)
	d.Owners = map[string][]Reference{}
	for i := range s.Kinds {
		for _, r := range s.Kinds[i].Refs {
			known := func(o Reference) bool { return o.Field == r.Field } // added for another kind with this type
			if !slices.ContainsFunc(d.Owners[r.Owner], known) {
				d.Owners[r.Owner] = append(d.Owners[r.Owner], r)
			}
		}
	}
	for i := range s.Kinds {
		k := &s.Kinds[i]
		d.Kinds = append(d.Kinds, derivedKind{Kind: k, Derived: d.Owners[k.Name], Inverses: s.inverses(k)})
		delete(d.Owners, k.Name)
	}
	var sdl strings.Builder
	if err := t.Execute(&sdl, d); err != nil {
		return nil, err
	}
	return parser.ParseSchema(&ast.Source{Name: "derived", Input: sdl.String()})
}

// quoted returns a text as a GraphQL string.
func quoted(text string) string {
	raw, _ := json.Marshal(text) // texts always marshal
	return string(raw)
}

// inverses returns the references to a kind for which it has a connection.
func (s *Schema) inverses(k *Kind) (out []inverse) {
	for i := range s.Kinds {
		o := &s.Kinds[i]
		for _, r := range o.Refs {
			if r.Kind == k.Name && r.Inverse != "" {
				out = append(out, inverse{Reference: r, From: o, AllNamespaces: o.Namespaced() && !k.Namespaced()})
			}
		}
	}
	return out
}

// SummaryField returns the name of the root field that counts the resources of a kind.
func SummaryField(plural string) string { return plural + "Summary" }

// Name returns the API name of the field with the reference.
func (r Reference) Name() string { return r.APIPath[strings.LastIndex(r.APIPath, ".")+1:] }

// Namespaced reports whether the kind is NAMESPACED.
func (k *Kind) Namespaced() bool { return k.Scope == descriptor.Namespaced }

// AboutSpec returns the description of the field spec: the author's, or a general one.
func (k *Kind) AboutSpec() string {
	return k.about("spec", "Desired state: what callers set.")
}

// AboutStatus returns the description of the field status: the author's, or a general one.
func (k *Kind) AboutStatus() string {
	return k.about("status", "Observed state: what a controller reports.")
}

func (k *Kind) about(name, otherwise string) string {
	if f := k.Definition.Fields.ForName(name); f != nil && f.Description != "" {
		return f.Description
	}
	return otherwise
}

// DefaultOrder describes the order of lists without orderBy.
func (k derivedKind) DefaultOrder() string {
	if k.Namespaced() {
		return "namespace and name"
	}
	return "name"
}

// SortablePaths returns the API paths of the fields by which lists can be ordered.
func (k derivedKind) SortablePaths() (out []string) {
	for _, i := range k.FilterableFields {
		if i.Sortable {
			out = append(out, k.APIPath(i.Path))
		}
	}
	return out
}

// Filtered reports whether a field of a part of the body, spec or status, can be filtered.
func (k derivedKind) Filtered(part string) bool { return filtered(k.Kind, part) }

// Write returns a mutation of the kind. format is the format of its name, with the name of the kind as argument.
func (k derivedKind) Write(format string) mutation {
	return mutation{k, fmt.Sprintf(format, k.Name)}
}

// Type returns the prefix of the names of the mutation's input and payload types.
func (m mutation) Type() string { return strings.ToUpper(m.Mutation[:1]) + m.Mutation[1:] }

// Upserts reports whether the mutation creates or replaces a resource.
func (m mutation) Upserts() bool { return strings.HasPrefix(m.Mutation, "upsert") }
