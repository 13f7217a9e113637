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

	sdl "github.com/sluicegw/sluice/graph/kinds"
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
	homes := typeHomes(schema)
	for _, k := range views(schema) {
		var b bytes.Buffer
		if err := tmpl.Execute(&b, k); err != nil {
			return nil, err
		}
		full, err := resolvedTypes(tmpl, schema, homes, k.Name)
		if err != nil {
			return nil, err
		}
		if err := add(kindFile(k.Name, "graphqls"), b.String()+"\n"+full); err != nil {
			return nil, err
		}
	}
	derived := deriveTypes(schema)
	for _, d := range schema.Documents {
		doc := *d.SchemaDocument
		doc.Definitions = nil
		for _, def := range d.Definitions {
			if homes[def.Name] == "" {
				doc.Definitions = append(doc.Definitions, def)
			}
		}
		for _, def := range d.Definitions {
			doc.Definitions = append(doc.Definitions, derived.of(def.Name)...)
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
