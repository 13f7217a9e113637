package release

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator"

	"github.com/sluicegw/sluice/graph/kinds"
)

// checkFile returns a finding if no view can be made from the APIFile of the version. [Write] never writes such a file,
// so it was edited by hand.
func (v *Version) checkFile() *kinds.Finding {
	// Parse the file again, because the validator changes the document.
	doc, err := parser.ParseSchemas(validator.Prelude, &ast.Source{Name: path.Join(v.dir, APIFile), Input: v.API})
	switch {
	case err != nil:
	case doc.Definitions.ForName("Query") == nil:
		return v.fileFinding(nil, "there is no type Query")
	case len(doc.Extensions) > 0:
		return v.fileFinding(doc.Extensions[0].Position, "types cannot be extended here")
	case len(doc.Schema) > 0:
		return v.fileFinding(doc.Schema[0].Position, "the root types cannot be named here")
	case len(doc.SchemaExtension) > 0:
		return v.fileFinding(doc.SchemaExtension[0].Position, "the root types cannot be named here")
	default:
		_, err = validator.ValidateSchemaDocument(doc)
	}
	if err == nil {
		return nil
	}
	found, ok := errors.AsType[*gqlerror.Error](err)
	if !ok || len(found.Locations) == 0 {
		return v.fileFinding(nil, err.Error())
	}
	return v.fileFinding(&ast.Position{Line: found.Locations[0].Line}, strings.TrimSuffix(found.Message, "."))
}

// fileFinding returns a finding about the APIFile.
func (v *Version) fileFinding(at *ast.Position, why string) *kinds.Finding {
	return &kinds.Finding{
		File:    path.Join(v.dir, APIFile),
		Line:    max(lineOf(at), 1),
		Message: fmt.Sprintf("%s: sluice catalogue release has not written this; put the file of %s back as it was", why, v),
	}
}
