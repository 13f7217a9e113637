package kinds

import (
	"bytes"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/formatter"
)

// Print writes the types of a schema as SDL, in the order of their names, but
// for those that every GraphQL schema has. keep says which types; nil keeps all.
func Print(s *ast.Schema, keep func(*ast.Definition) bool) string {
	doc := &ast.SchemaDocument{}
	for _, def := range s.Types {
		if def.BuiltIn || strings.HasPrefix(def.Name, "__") || keep != nil && !keep(def) {
			continue
		}
		doc.Definitions = append(doc.Definitions, printable(def))
	}
	slices.SortFunc(doc.Definitions, func(a, b *ast.Definition) int { return strings.Compare(a.Name, b.Name) })
	var b bytes.Buffer
	formatter.NewFormatter(&b, formatter.WithIndent("  ")).FormatSchemaDocument(doc)
	var lines []string
	for line := range strings.Lines(strings.ReplaceAll(b.String(), "\n}\n", "\n}\n\n")) {
		lines = append(lines, strings.TrimRight(line, " \n"))
	}
	return strings.TrimSpace(strings.Join(lines, "\n")) + "\n"
}

// printable is a definition without the fields of introspection, with
// descriptions as block strings have them: the formatter leaves that out.
func printable(def *ast.Definition) *ast.Definition {
	out := *def
	out.Description = blockText(def.Description)
	out.Fields = nil
	for _, f := range def.Fields {
		if strings.HasPrefix(f.Name, "__") {
			continue
		}
		g := *f
		g.Description, g.Arguments, g.Directives = blockText(f.Description), nil, standard(f.Directives)
		for _, a := range f.Arguments {
			b := *a
			b.Description = blockText(a.Description)
			g.Arguments = append(g.Arguments, &b)
		}
		out.Fields = append(out.Fields, &g)
	}
	out.EnumValues = nil
	for _, v := range def.EnumValues {
		w := *v
		w.Description = blockText(v.Description)
		out.EnumValues = append(out.EnumValues, &w)
	}
	return &out
}

func blockText(text string) string { return strings.ReplaceAll(text, `"""`, `\"""`) }
