package generator

import (
	"bytes"
	_ "embed" // the template beside this file
	"fmt"
	"path"
	"slices"
	"strings"
	"text/template"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/formatter"
	"github.com/vektah/gqlparser/v2/parser"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/internal/sdl"
)

//go:embed kind.graphqls.tmpl
var kindTemplate string

// Derive returns the public SDL of the API, as files of a folder: that of the
// API itself, one for each kind, and the authors' own types with the inputs
// that follow from them.
func Derive(schema *sdl.Schema, folder string) ([]*ast.Source, error) {
	var out []*ast.Source
	add := func(name, text string) error {
		text, err := canonical(name, text)
		if err != nil {
			return fmt.Errorf("derived schema: %w", err)
		}
		if strings.TrimSpace(text) != "" {
			out = append(out, &ast.Source{Name: path.Join(folder, name), Input: text})
		}
		return nil
	}
	if err := add(kindFile("api", "graphqls"), sdl.API()); err != nil {
		return nil, err
	}
	tmpl, err := template.New("kind").Funcs(template.FuncMap{"described": described}).Parse(kindTemplate)
	if err != nil {
		return nil, err
	}
	for _, k := range schema.Kinds {
		var b bytes.Buffer
		if err := tmpl.Execute(&b, &kindView{k}); err != nil {
			return nil, err
		}
		if err := add(kindFile(k.Name, "graphqls"), b.String()); err != nil {
			return nil, err
		}
	}
	inputs := inputsOf(schema)
	for _, d := range schema.Documents {
		doc := *d.SchemaDocument
		doc.Definitions = slices.Clone(doc.Definitions)
		for _, def := range d.Definitions {
			if input := inputs[def.Name]; input != nil {
				doc.Definitions = append(doc.Definitions, input)
			}
		}
		if err := add(path.Base(d.Name), render(&doc)); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// kindFile is the name of a generated file for a kind.
func kindFile(kind, ext string) string { return "zz_" + strings.ToLower(kind) + "." + ext }

// canonical writes SDL in one form, whoever wrote it.
func canonical(name, text string) (string, error) {
	doc, err := parser.ParseSchema(&ast.Source{Name: name, Input: text})
	if err != nil {
		return "", err
	}
	return render(doc), nil
}

func render(doc *ast.SchemaDocument) string {
	for _, def := range slices.Concat(doc.Definitions, doc.Extensions) {
		escapeDescriptions(def)
	}
	var b bytes.Buffer
	formatter.NewFormatter(&b, formatter.WithIndent("  ")).FormatSchemaDocument(doc)
	var lines []string
	for line := range strings.Lines(strings.ReplaceAll(b.String(), "\n}\n", "\n}\n\n")) {
		lines = append(lines, strings.TrimRight(line, " \n"))
	}
	return strings.TrimSpace(strings.Join(lines, "\n")) + "\n"
}

// described is a block string.
func described(text string) string { return `"""` + "\n" + escape(text) + "\n" + `"""` }

// escape does for block strings what the formatter of gqlparser leaves out. Twice is as good as once.
func escape(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, `\"""`, `"""`), `"""`, `\"""`)
}

func escapeDescriptions(def *ast.Definition) {
	def.Description = escape(def.Description)
	for _, f := range def.Fields {
		f.Description = escape(f.Description)
		for _, a := range f.Arguments {
			a.Description = escape(a.Description)
		}
	}
	for _, v := range def.EnumValues {
		v.Description = escape(v.Description)
	}
}

// kindView is what the template asks of a kind.
type kindView struct{ sdl.Kind }

// Namespaced says whether names of the kind live in namespaces.
func (v kindView) Namespaced() bool { return v.Scope == backend.Namespaced }

// SpecType and StatusType are the types of the two parts; a kind may have no status.
func (v kindView) SpecType() string { return v.Spec.Name }

// StatusType is the type of the status, empty if there is none.
func (v kindView) StatusType() string {
	if v.Status == nil {
		return ""
	}
	return v.Status.Name
}

// SpecInput is the name of the input of the spec.
func (v kindView) SpecInput() string { return sdl.InputType(v.Spec.Name) }

// About is the author's description of a field of the kind, or one for all kinds.
func (v kindView) About(field, otherwise string) string {
	if f := v.Definition.Fields.ForName(field); f != nil && f.Description != "" {
		return f.Description
	}
	return otherwise
}

// Title is the author's description of the kind, or one for all kinds.
func (v kindView) Title() string {
	if v.Description != "" {
		return v.Description
	}
	return "A resource of kind " + v.Name + "."
}
