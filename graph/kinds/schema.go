package kinds

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator"

	"github.com/sluicegw/sluice/backend/descriptor"
)

// API derives the API's schema: what is the same whatever the kinds are, what
// follows from each kind, and the authors' own types with their inputs, patches
// and filters.
func (s *Schema) API() (*ast.Schema, error) {
	sources, err := apiSources()
	if err != nil {
		return nil, err
	}
	doc, err := parser.ParseSchemas(append([]*ast.Source{validator.Prelude}, sources...)...)
	if err != nil {
		return nil, err
	}
	d := &derivation{schema: s, owners: map[string][]Reference{}}
	for _, k := range s.Kinds {
		for _, r := range k.Refs {
			d.owners[r.Owner] = append(d.owners[r.Owner], r)
		}
	}
	types, shown := deriveTypes(s), shownOf(s.Kinds)
	for _, document := range s.Documents {
		for _, def := range document.Definitions {
			if output := shown.output(def); output != nil {
				doc.Definitions = append(doc.Definitions, d.authored(output))
			}
			doc.Definitions = append(doc.Definitions, types.of(def.Name)...)
		}
	}
	for i := range s.Kinds {
		d.kind(&s.Kinds[i])
	}
	doc.Definitions = append(doc.Definitions, d.definitions...)
	for _, root := range []struct {
		name   string
		fields ast.FieldList
	}{{"Query", d.query}, {"Mutation", d.mutation}, {"Subscription", d.subscription}} {
		def := doc.Definitions.ForName(root.name)
		def.Fields = append(def.Fields, root.fields...)
	}
	for _, def := range doc.Definitions {
		complete(def)
	}
	out, invalid := validator.ValidateSchemaDocument(doc)
	if invalid != nil {
		return nil, located(invalid)
	}
	for _, k := range s.Kinds {
		mark(out, shown, k.Spec)
	}
	delete(out.Directives, "defer") // the transports do not deliver it
	return out, nil
}

// located is an error of the whole schema as a finding.
func located(err error) error {
	var e *gqlerror.Error
	if !errors.As(err, &e) || len(e.Locations) == 0 {
		return fmt.Errorf("derived schema: %w", err)
	}
	file, _ := e.Extensions["file"].(string)
	message := e.Message
	if name, ok := strings.CutPrefix(message, "Undefined type "); ok {
		message = fmt.Sprintf("type %s is not known: no kind of the catalogue derives it", strings.TrimSuffix(name, "."))
	}
	return Findings{{File: file, Line: e.Locations[0].Line, Message: shorten(message)}}
}

// complete gives a derived definition the positions that validation expects.
func complete(def *ast.Definition) {
	at := def.Position
	if at == nil {
		at = &ast.Position{Src: &ast.Source{Name: "derived"}}
		def.Position = at
	}
	typed := func(t *ast.Type) {
		for ; t != nil; t = t.Elem {
			if t.Position == nil {
				t.Position = at
			}
		}
	}
	directives := func(list ast.DirectiveList) {
		for _, d := range list {
			if d.Position == nil {
				d.Position = at
			}
		}
	}
	directives(def.Directives)
	for _, f := range def.Fields {
		if f.Position == nil {
			f.Position = at
		}
		typed(f.Type)
		directives(f.Directives)
		for _, a := range f.Arguments {
			if a.Position == nil {
				a.Position = at
			}
			typed(a.Type)
		}
	}
	for _, v := range def.EnumValues {
		if v.Position == nil {
			v.Position = at
		}
		directives(v.Directives)
	}
}

// derivation collects what is derived from the kinds of a schema.
type derivation struct {
	schema *Schema
	// owners are the references by the type that has the derived field.
	owners                        map[string][]Reference
	definitions                   ast.DefinitionList
	query, mutation, subscription ast.FieldList
}

// authored is an author's type with the fields that its references derive.
func (d *derivation) authored(def *ast.Definition) *ast.Definition {
	refs := referencesOn(d.owners[def.Name])
	if len(refs) == 0 {
		return def
	}
	out := *def
	out.Fields = slices.Clone(def.Fields)
	for _, r := range refs {
		out.Fields = append(out.Fields, referenceField(r))
	}
	return &out
}

// referencesOn are references of which no two have the same derived field.
func referencesOn(refs []Reference) (out []Reference) {
	for _, r := range refs {
		if !slices.ContainsFunc(out, func(o Reference) bool { return o.Field == r.Field }) {
			out = append(out, r)
		}
	}
	return out
}

// inverses are the references to a kind that derive a field on it, and the kinds that have them.
func (d *derivation) inverses(k *Kind) (refs []Reference, from []*Kind) {
	for i := range d.schema.Kinds {
		o := &d.schema.Kinds[i]
		for _, r := range o.Refs {
			if r.Kind == k.Name && r.Inverse != "" {
				refs, from = append(refs, r), append(from, o)
			}
		}
	}
	return refs, from
}

// namespaced says whether names of the kind live in namespaces.
func (k *Kind) namespaced() bool { return k.Scope == descriptor.Namespaced }
