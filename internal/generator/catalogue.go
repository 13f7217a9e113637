package generator

import (
	"bytes"
	_ "embed" // the template beside this file
	"fmt"
	"go/format"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/99designs/gqlgen/codegen/templates"

	sdl "github.com/sluicegw/sluice/graph/kinds"
)

//go:embed catalogue.go.tmpl
var catalogueTemplate string

// catalogueView is what the template of the catalogue sees.
type catalogueView struct {
	Package, Model string
	Kinds          []*bodyView
}

// writeCatalogue writes the descriptors: a file for each kind and one that lists them.
func writeCatalogue(schema *sdl.Schema, out layout) error {
	tmpl, err := template.New("catalogue").Parse(catalogueTemplate)
	if err != nil {
		return err
	}
	render := func(name, file string, data any) error {
		return writeGo(tmpl, name, filepath.Join(out.catalogue, file), data)
	}
	all := catalogueView{Package: filepath.Base(out.catalogue), Model: out.modelImport, Kinds: bodyViews(schema)}
	if err := render("all", "zz_kinds.go", all); err != nil {
		return err
	}
	for _, k := range all.Kinds {
		one := all
		one.Kinds = []*bodyView{k}
		if err := render("kind", kindFile(k.Name, "kind.go"), one); err != nil {
			return err
		}
	}
	return nil
}

// writeGo writes a Go file that a template makes.
func writeGo(tmpl *template.Template, name, file string, data any) error {
	var b bytes.Buffer
	if err := tmpl.ExecuteTemplate(&b, name, data); err != nil {
		return err
	}
	code, err := format.Source(b.Bytes())
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return writeFile(file, goHeader+"\n"+string(code))
}

// Literal is the descriptor as Go source, without Decode.
func (v *bodyView) Literal() string {
	text := literal(v.kindView.Kind.Kind)
	return strings.TrimSuffix(text, "}")
}

// NeedsJSON says whether the descriptor has a numeric default.
func (v *bodyView) NeedsJSON() bool { return strings.Contains(v.Literal(), "json.Number(") }

// SpecGo is the Go name of the type of the spec.
func (v *bodyView) SpecGo() string { return templates.ToGo(v.SpecType()) }

// StatusGo is the Go name of the type of the status, empty if there is none.
func (v *bodyView) StatusGo() string {
	if v.Status == nil {
		return ""
	}
	return templates.ToGo(v.StatusType())
}

// comment is a Go comment: of a type that has no description a sentence by its name.
func comment(name, text string) string {
	if text == "" {
		if name == "" {
			return ""
		}
		text = name + " is an enum of the API."
	} else if name != "" {
		text = name + ": " + text
	}
	return "// " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n// ")
}
