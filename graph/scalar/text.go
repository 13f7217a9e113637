package scalar

import "github.com/vektah/gqlparser/v2/ast"

// IsText says whether a value is a string of a type that takes each as it is: String or ID.
// Most values of requests are.
func IsText(t *ast.Type, value any) bool {
	_, ok := value.(string)
	return ok && (t.NamedType == "String" || t.NamedType == "ID")
}
