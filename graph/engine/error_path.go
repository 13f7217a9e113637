package engine

import (
	"slices"
	"strings"

	"github.com/sluicegw/sluice/backend/service/failure"
)

// inArguments converts a path in an error of the service to a path that begins with an argument of the field; nil if
// that is not possible. Paths of the service begin in the resource or in the manifest, and use the field names of the
// arguments.
func inArguments(f *field, path string) []any {
	steps := failure.Steps(path)
	if len(steps) == 0 {
		return nil
	}
	switch first := steps[0]; {
	case first == "clientMutationId", first == "manifest", first == "ignoreRevision", first == "fieldManager":
		return append([]any{"input"}, steps...)
	case f.input == inputManifest:
		return append([]any{"input", "manifest"}, steps...)
	case first == "metadata": // inputs have its fields beside the spec
		steps = steps[1:]
	}
	if f.input == inputJSON && len(steps) > 0 && (steps[0] == "spec" || steps[0] == "status") {
		steps[0] = f.part(steps[0].(string))
	}
	if f.input != inputNone {
		return append([]any{"input"}, steps...)
	}
	return steps
}

// inEntries converts the key of a map in a path to an index. The service treats a map of strings as an object; in the
// API it is a list of entries.
func (r *run) inEntries(f *field, path []any, rule string) []any {
	if f.input != inputTyped { // JSON has maps
		return path
	}
	var at any = f.node.ArgumentMap(r.oc.Variables)
	for i, step := range path {
		switch v := at.(type) {
		case map[string]any:
			if name, ok := step.(string); ok { // not an index: an object can stand for a list of one
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

// placed returns the extensions of an error about a value in the arguments; nil if the path is empty.
func placed(path []any) map[string]any {
	if len(path) == 0 {
		return nil
	}
	return map[string]any{"path": path, "field": failure.Text(path)}
}
