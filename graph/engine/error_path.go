package engine

import (
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend/service/failure"
)

// inArguments returns a path of the service as a path from an argument of the field, in names of the API; nil for no
// path. Paths of the service begin in the resource, or in the manifest.
func inArguments(f *field, path string) []any {
	steps := failure.Steps(inAPI(f, path))
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

// inAPI returns a path of the service, which has stored names, in names of the API. Manifests have stored names, so
// paths in them stay.
func inAPI(f *field, path string) string {
	if f.kind == nil {
		return path
	}
	for _, part := range []string{"spec", "status"} { // in a filter, other steps come before
		if at := strings.Index("."+path, "."+part+"."); at >= 0 {
			return path[:at] + f.kind.APIPath(path[at:])
		}
	}
	return path
}

// renamed returns an error with names of the API in its message. Its path stays: see [inArguments].
func renamed(f *field, err *failure.Error) *failure.Error {
	path := inAPI(f, err.Path)
	if path == err.Path {
		return err
	}
	out := *err
	out.Message = strings.ReplaceAll(err.Message, err.Path, path)
	return &out
}

// inEntries returns a path into a map of strings as a path into the list of entries that the API has in its place.
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

// steps returns the steps of a path of coerced arguments.
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

// placed returns the extensions of an error about a value of the arguments; nil for no path.
func placed(path []any) map[string]any {
	if len(path) == 0 {
		return nil
	}
	return map[string]any{"path": path, "field": failure.Text(path)}
}
