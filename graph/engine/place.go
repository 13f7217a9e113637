package engine

import (
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend/service/failure"
)

// inArguments is the path of a value from the argument of the field that it is in,
// in the API's own names; nil for no path. The service names values within the
// resource, or within the manifest.
func inArguments(f *field, path string) []any {
	steps := failure.Steps(path)
	if len(steps) == 0 {
		return nil
	}
	switch first := steps[0]; {
	case first == "clientMutationId", first == "manifest", first == "ignoreRevision", first == "fieldManager":
		return append([]any{"input"}, steps...)
	case f.op == opApply:
		return append([]any{"input", "manifest"}, steps...)
	case first == "metadata": // inputs have what is in it beside the spec
		steps = steps[1:]
	}
	if f.op == opWrite && f.kind == nil && len(steps) > 0 && (steps[0] == "spec" || steps[0] == "status") {
		steps[0] = f.part(steps[0].(string))
	}
	if f.op == opWrite {
		return append([]any{"input"}, steps...)
	}
	return steps
}

// inEntries is the path of a value of a map of strings as the API has maps: lists of
// entries. The service has them as objects.
func (r *run) inEntries(f *field, path []any, rule string) []any {
	if f.op != opWrite || f.kind == nil { // JSON has maps
		return path
	}
	var at any = f.node.ArgumentMap(r.oc.Variables)
	for i, step := range path {
		switch v := at.(type) {
		case map[string]any:
			if name, ok := step.(string); ok { // an index: one object stands for a list of one
				at = v[name]
			}
		case []any:
			if n, ok := step.(int); ok && n < len(v) {
				at = v[n]
				continue
			}
			n := slices.IndexFunc(v, func(e any) bool {
				entry, _ := e.(map[string]any)
				key, ok := entry["key"].(string)
				return ok && failure.Shorten(key) == step
			})
			if n < 0 {
				return path
			}
			part := "value"
			if strings.HasPrefix(rule, "key") {
				part = "key"
			}
			return append(append(path[:i:i], n, part), path[i+1:]...)
		default:
			return path
		}
	}
	return path
}

// steps are those of a path of coerced arguments.
func steps(path ast.Path) []any {
	out := make([]any, len(path))
	for i, step := range path {
		switch step := step.(type) {
		case ast.PathName:
			out[i] = string(step)
		case ast.PathIndex:
			out[i] = int(step)
		}
	}
	return out
}

// placed are the extensions of an error about a value of the arguments, or none.
func placed(path []any) map[string]any {
	if len(path) == 0 {
		return nil
	}
	return map[string]any{"path": path, "field": failure.Text(path)}
}
