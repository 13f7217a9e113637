package kinds

import (
	"errors"
	"fmt"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator"
)

// API returns the schema of the API: types and fields that do not depend on the kinds, those that are derived from
// kinds, and the authors' types.
func (s *Schema) API() (*ast.Schema, error) {
	sources, err := apiSources()
	if err != nil {
		return nil, err
	}
	doc, err := parser.ParseSchemas(append([]*ast.Source{validator.Prelude}, sources...)...)
	if err != nil {
		return nil, err
	}
	shown := shownOf(s.Kinds)
	for _, document := range s.Documents {
		for _, def := range document.Definitions {
			if output := shown.output(def); output != nil {
				doc.Definitions = append(doc.Definitions, output)
			}
		}
	}
	derived, err := s.derive()
	if err != nil {
		return nil, err
	}
	doc.Definitions = append(doc.Definitions, derived.Definitions...)
	doc.Extensions = append(derived.Extensions, doc.Extensions...) // fields that are resolved by hand stand last
	out, invalid := validator.ValidateSchemaDocument(doc)
	if invalid != nil {
		return nil, located(invalid)
	}
	for _, k := range s.Kinds {
		mark(out, shown, k.Spec)
	}
	delete(out.Directives, "defer") // the transports do not deliver it
	return out, nil
}

// located converts an error of the complete schema into a finding.
func located(err error) error {
	var e *gqlerror.Error
	if !errors.As(err, &e) || len(e.Locations) == 0 {
		return fmt.Errorf("derived schema: %w", err)
	}
	file, _ := e.Extensions["file"].(string)
	message := e.Message
	if name, ok := strings.CutPrefix(message, "Undefined type "); ok {
		message = fmt.Sprintf(
			"type %s is not known: no kind of the catalogue derives it",
			strings.TrimSuffix(name, "."),
		)
	}
	return Findings{{File: file, Line: e.Locations[0].Line, Message: shorten(message)}}
}
