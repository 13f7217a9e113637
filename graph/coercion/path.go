package coercion

import "github.com/vektah/gqlparser/v2/ast"

// ErrorPath converts the names and indexes of a path to a path of gqlparser's errors.
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
