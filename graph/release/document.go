package release

import (
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
)

// document is the syntax tree of an APIFile.
type document struct {
	*ast.SchemaDocument
	// shifts are what to add to the lines of positions in a definition, which may be shared with another version.
	shifts map[*ast.Definition]int
}

// parseDocument parses an APIFile. A definition that another version has with the same text is shared with it:
// most of a file is the same from version to version. The definitions stand between empty lines. A text of which such a
// part does not parse by itself is parsed as a whole.
func (r *reader) parseDocument(name, text string) (*document, error) {
	out := &document{SchemaDocument: &ast.SchemaDocument{}, shifts: map[*ast.Definition]int{}}
	line := 0
	for part := range strings.SplitSeq(text, "\n\n") {
		one := r.parsePart(name, part)
		if one == nil {
			return parseWhole(name, text)
		}
		out.Definitions = append(out.Definitions, one.Definitions...)
		out.Directives = append(out.Directives, one.Directives...)
		for _, def := range one.Definitions {
			out.shifts[def] = line
		}
		line += strings.Count(part, "\n") + 2
	}
	return out, nil
}

// parsePart returns the definitions in a part of a file, nil if it does not parse or has anything else.
func (r *reader) parsePart(name, part string) *ast.SchemaDocument {
	if one, known := r.parsed[part]; known {
		return one
	}
	doc, err := parser.ParseSchema(&ast.Source{Name: name, Input: part})
	if err != nil || len(doc.Schema)+len(doc.SchemaExtension)+len(doc.Extensions)+len(doc.DirectiveExtensions) > 0 {
		doc = nil
	}
	r.parsed[part] = doc
	return doc
}

// parseWhole parses an APIFile as a whole.
func parseWhole(name, text string) (*document, error) {
	doc, err := parser.ParseSchema(&ast.Source{Name: name, Input: text})
	if err != nil {
		return nil, err
	}
	return &document{SchemaDocument: doc}, nil
}
