package kinds

import (
	"bytes"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/formatter"
)

// semanticNonNull is the directive of fields that are null only where they could not be read, so that
// the rest of an answer does not go with them.
const semanticNonNull = "semanticNonNull"

// Print returns the types of a schema as SDL, in the order of their names, without those that every GraphQL schema
// has. keep selects types; nil selects all, and the directive @semanticNonNull too.
func Print(s *ast.Schema, keep func(*ast.Definition) bool) string {
	doc := &ast.SchemaDocument{}
	if d := s.Directives[semanticNonNull]; d != nil && keep == nil {
		doc.Directives = append(doc.Directives, d)
	}
	for _, def := range s.Types {
		if def.BuiltIn || strings.HasPrefix(def.Name, "__") || keep != nil && !keep(def) {
			continue
		}
		doc.Definitions = append(doc.Definitions, printable(def))
	}
	slices.SortFunc(doc.Definitions, func(a, b *ast.Definition) int { return strings.Compare(a.Name, b.Name) })
	var b bytes.Buffer
	formatter.NewFormatter(&b, formatter.WithIndent("  ")).FormatSchemaDocument(doc)
	separated := strings.NewReplacer("\n}\n", "\n}\n\n", " on FIELD_DEFINITION\n", " on FIELD_DEFINITION\n\n")
	var lines []string
	for line := range strings.Lines(separated.Replace(b.String())) {
		lines = append(lines, strings.TrimRight(line, " \n"))
	}
	return strings.TrimSpace(strings.Join(lines, "\n")) + "\n"
}

// printable returns a definition without fields of introspection and without authors' directives.
func printable(def *ast.Definition) *ast.Definition {
	out := *def
	out.Fields = nil
	for _, f := range def.Fields {
		if strings.HasPrefix(f.Name, "__") {
			continue
		}
		g := *f
		g.Directives = ast.DirectiveList(f.Directives.ForNames("deprecated"))
		if d := f.Directives.ForName(semanticNonNull); d != nil {
			g.Directives = append(g.Directives, d)
		}
		out.Fields = append(out.Fields, &g)
	}
	return &out
}
