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
	steps := failure.Steps(inAPI(f, path))
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

// inAPI is a path of the service, which has the names of the store, in the names of the API.
// Those within a manifest stay: manifests have the names of the store.
func inAPI(f *field, path string) string {
	if f.kind == nil || f.op == opApply {
		return path
	}
	for _, part := range []string{"spec", "status"} { // of a filter, what is before it leads to it
		if at := strings.Index("."+path, "."+part+"."); at >= 0 {
			return path[:at] + f.kind.APIPath(path[at:])
		}
	}
	return path
}

// renamed is an error whose text has the names of the API. Its path stays: see [inArguments].
func renamed(f *field, err *failure.Error) *failure.Error {
	path := inAPI(f, err.Path)
	if path == err.Path {
		return err
	}
	out := *err
	out.Message = strings.ReplaceAll(err.Message, err.Path, path)
	return &out
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
