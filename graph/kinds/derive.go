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

// derivation is the input of the template.
type derivation struct {
	Kinds []derivedKind
	// Owners are the references whose derived field stands on an author's type, by that type.
	Owners map[string][]Reference
	// Inputs are the inputs, patches and filters of object types.
	Inputs []*derivedInput
	// Enums are the enums that have a filter, EnumLists those whose lists have one.
	Enums, EnumLists map[string]bool
}

// derivedKind is a kind in the template.
type derivedKind struct {
	*Kind
	// Derived are its references whose derived fields stand on the kind, Inverses the references that
	// derive an inverse on it.
	Derived  []Reference
	Inverses []inverse
}

// inverse is a reference to a kind that derives a field on it.
type inverse struct {
	Reference
	From *Kind
	// AllNamespaces says that resources of any namespace may refer to the kind.
	AllNamespaces bool
}

// mutation is the mutation of a kind in the template.
type mutation struct {
	derivedKind
	Mutation string
}

// derive returns the SDL document of everything that is derived from the kinds.
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
			known := func(o Reference) bool { return o.Field == r.Field } // of another kind that has the type
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

// quoted returns a text as a string of GraphQL.
func quoted(text string) string {
	raw, _ := json.Marshal(text) // texts always marshal
	return string(raw)
}

// inverses returns the references to a kind that derive a field on it.
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

// SummaryField returns the name of the field that counts the resources of a kind by their values.
func SummaryField(plural string) string { return plural + "Summary" }

// Name returns the name of the field that holds the reference.
func (r Reference) Name() string { return r.APIPath[strings.LastIndex(r.APIPath, ".")+1:] }

// Namespaced reports whether the kind is NAMESPACED.
func (k *Kind) Namespaced() bool { return k.Scope == descriptor.Namespaced }

// AboutSpec returns the description of the field spec: the author's, or a general one.
func (k *Kind) AboutSpec() string {
	return k.about("spec", "Desired state: what callers set.")
}

// AboutStatus returns the description of the field status.
func (k *Kind) AboutStatus() string {
	return k.about("status", "Observed state: what a controller reports.")
}

func (k *Kind) about(name, otherwise string) string {
	if f := k.Definition.Fields.ForName(name); f != nil && f.Description != "" {
		return f.Description
	}
	return otherwise
}

// DefaultOrder returns the order of lists without orderBy.
func (k derivedKind) DefaultOrder() string {
	if k.Namespaced() {
		return "namespace and name"
	}
	return "name"
}

// SortablePaths returns the paths of the fields that orders can name.
func (k derivedKind) SortablePaths() (out []string) {
	for _, i := range k.FilterableFields {
		if i.Sortable {
			out = append(out, k.APIPath(i.Path))
		}
	}
	return out
}

// Filtered reports whether filters can name any field of the spec or the status.
func (k derivedKind) Filtered(part string) bool { return filtered(k.Kind, part) }

// Write returns the mutation whose name is the kind's in a format.
func (k derivedKind) Write(format string) mutation {
	return mutation{k, fmt.Sprintf(format, k.Name)}
}

// Type returns the prefix of the names of its input and payload.
func (m mutation) Type() string { return strings.ToUpper(m.Mutation[:1]) + m.Mutation[1:] }

// Upserts reports whether it may create the resource or change it.
func (m mutation) Upserts() bool { return strings.HasPrefix(m.Mutation, "upsert") }
