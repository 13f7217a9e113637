package kinds

import (
	"bytes"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/formatter"
)

// semanticNonNull is the directive on fields that are null only if there was an error. They are nullable so that the
// rest of the answer remains.
const semanticNonNull = "semanticNonNull"

// Print returns the types of a schema as SDL, ordered by name, without the built-in types of GraphQL. keep selects the
// types; if it is nil, all are printed, together with the directive @semanticNonNull.
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
	return printDocument(doc)
}

// PrintBare returns all types of a schema as SDL, like [Print], but without descriptions.
func PrintBare(s *ast.Schema) string {
	doc := &ast.SchemaDocument{}
	if d := s.Directives[semanticNonNull]; d != nil {
		bare := *d
		bare.Description = ""
		doc.Directives = append(doc.Directives, &bare)
	}
	for _, def := range s.Types {
		if !def.BuiltIn && !strings.HasPrefix(def.Name, "__") {
			doc.Definitions = append(doc.Definitions, bare(printable(def)))
		}
	}
	return printDocument(doc)
}

// bare removes all descriptions from a definition. The definition must not share its fields with another one.
func bare(def *ast.Definition) *ast.Definition {
	def.Description = ""
	for _, f := range def.Fields {
		f.Description = ""
		for i, a := range f.Arguments {
			undescribed := *a
			undescribed.Description = ""
			f.Arguments[i] = &undescribed
		}
	}
	for i, v := range def.EnumValues {
		undescribed := *v
		undescribed.Description = ""
		def.EnumValues[i] = &undescribed
	}
	return def
}

// printDocument returns a document as text, with its types ordered by name.
func printDocument(doc *ast.SchemaDocument) string {
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

// printable returns a copy of a definition without introspection fields and without the directives for authors.
func printable(def *ast.Definition) *ast.Definition {
	out := *def
	out.EnumValues = slices.Clone(def.EnumValues)
	out.Fields = nil
	for _, f := range def.Fields {
		if strings.HasPrefix(f.Name, "__") {
			continue
		}
		g := *f
		g.Arguments = slices.Clone(f.Arguments)
		g.Directives = ast.DirectiveList(f.Directives.ForNames("deprecated"))
		if d := f.Directives.ForName(semanticNonNull); d != nil {
			g.Directives = append(g.Directives, d)
		}
		out.Fields = append(out.Fields, &g)
	}
	return &out
}
