package release

import (
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
)

// document is the syntax tree of an APIFile.
type document struct {
	*ast.SchemaDocument
	// shifts are the numbers to add to line numbers in a definition. A definition may be shared
	// with another version, where it is at another line.
	shifts map[*ast.Definition]int
}

// parseDocument parses an APIFile. It splits the file at empty lines into definitions, and shares a
// definition with other versions that have the same text, because most of the file is the same from
// version to version. If a part does not parse by itself, the file is parsed as a whole.
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

// parsePart returns the definitions in a part of a file; nil if it does not parse or contains
// anything else.
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
