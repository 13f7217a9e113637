package kinds

import "github.com/vektah/gqlparser/v2/ast"

// APISources are the SDL that is the same whatever the kinds are.
func APISources() ([]*ast.Source, error) { return apiSources() }
