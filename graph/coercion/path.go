package coercion

import "github.com/vektah/gqlparser/v2/ast"

// ErrorPath converts the steps of a path to the form of gqlparser's errors. A step is a name or an index.
func ErrorPath(steps []any) ast.Path {
	var out ast.Path
	for _, step := range steps {
		switch step := step.(type) {
		case string:
			out = append(out, ast.PathName(step))
		case int:
			out = append(out, ast.PathIndex(step))
		}
	}
	return out
}
