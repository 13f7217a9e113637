package release

import (
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
)

// document is a parsed APIFile.
type document struct {
	*ast.SchemaDocument
	// shifts has the number that must be added to the line numbers in a definition. A definition may be shared with
	// another version, in whose file it is at another line.
	shifts map[*ast.Definition]int
}

// parseDocument parses an APIFile. Most of the file is the same in many versions. Therefore it splits the file into
// definitions at empty lines, and shares definitions with the same text. If a part cannot be parsed by itself, it
// parses the file as a whole.
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

// parsePart parses a part of a file. It returns nil if the part cannot be parsed or has anything but definitions.
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
