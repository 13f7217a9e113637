package kinds

import (
	"bytes"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/formatter"
	"github.com/vektah/gqlparser/v2/parser"
)

// Vocabulary returns SDL for editors with everything that files of a catalogue may use without declaring it: the
// directives, and the types of the API for fields of kinds.
func Vocabulary() (string, error) {
	sources, err := apiSources()
	if err != nil {
		return "", err
	}
	api, err := parser.ParseSchemas(sources...)
	if err != nil {
		return "", err
	}
	doc := &ast.SchemaDocument{}
	add := func(name string) {
		def := api.Definitions.ForName(name)
		if def != nil && doc.Definitions.ForName(name) == nil {
			doc.Definitions = append(doc.Definitions, def)
		}
	}
	for _, name := range []string{"SafeInt", "Time", "Condition", "MapEntry"} {
		add(name)
	}
	for i := 0; i < len(doc.Definitions); i++ { // and the types of their fields
		for _, f := range doc.Definitions[i].Fields {
			add(f.Type.Name())
		}
	}
	for i, def := range doc.Definitions {
		doc.Definitions[i] = printable(def)
	}
	var b bytes.Buffer
	formatter.NewFormatter(&b, formatter.WithIndent("  ")).FormatSchemaDocument(doc)
	return directivesSDL + "\n" + b.String() + queryForEditors, nil
}

// queryForEditors is a type Query for editors, which accept no schema without one.
const queryForEditors = `
"Stands for the queries of the API, which are derived from the kinds."
type Query {
  apiVersion: String
}
`
