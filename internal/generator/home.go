package generator

import (
	"bytes"
	"slices"
	"text/template"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"

	"github.com/sluicegw/sluice/backend"
	sdl "github.com/sluicegw/sluice/graph/kinds"
)

// typeHomes are the authors' types that have fields with derived resolvers, and
// for each the kind whose file it goes to: gqlgen writes resolvers into a file
// by the type's, and the authors' own files of resolvers are theirs.
func typeHomes(schema *sdl.Schema) map[string]string {
	out := map[string]string{}
	for _, k := range schema.Kinds {
		claim := func(typ string) {
			if out[typ] == "" && typ != k.Name {
				out[typ] = k.Name
			}
		}
		for _, r := range k.Refs {
			claim(r.Owner)
		}
		for _, s := range []*backend.Shape{k.Spec, k.Status} {
			_ = eachShape(s, func(s *backend.Shape) error {
				if slices.ContainsFunc(s.Fields, func(f backend.Field) bool { return f.Type == backend.TypeMap }) {
					claim(s.Name)
				}
				return nil
			})
		}
	}
	return out
}

// resolvedTypes are the types at home with a kind, with the fields that their
// references derive.
func resolvedTypes(tmpl *template.Template, schema *sdl.Schema, homes map[string]string, kind string) (string, error) {
	doc := &ast.SchemaDocument{}
	for _, d := range schema.Documents {
		for _, def := range d.Definitions {
			if homes[def.Name] != kind {
				continue
			}
			full, err := withReferences(tmpl, schema, def)
			if err != nil {
				return "", err
			}
			doc.Definitions = append(doc.Definitions, full)
		}
	}
	return render(doc), nil
}

// withReferences adds to an author's type the fields that its references derive.
func withReferences(tmpl *template.Template, schema *sdl.Schema, def *ast.Definition) (*ast.Definition, error) {
	var refs []sdl.Reference
	for _, k := range schema.Kinds {
		refs = append(refs, k.Refs...)
	}
	on := referencesOn(def.Name, refs)
	if len(on) == 0 {
		return def, nil
	}
	var b bytes.Buffer
	b.WriteString("type " + def.Name + " {\n")
	for _, r := range on {
		if err := tmpl.ExecuteTemplate(&b, "reference", r); err != nil {
			return nil, err
		}
		b.WriteString("\n")
	}
	b.WriteString("}\n")
	doc, err := parser.ParseSchema(&ast.Source{Name: def.Name, Input: b.String()})
	if err != nil {
		return nil, err
	}
	out := *def
	out.Fields = append(slices.Clone(def.Fields), doc.Definitions[0].Fields...)
	return &out, nil
}
