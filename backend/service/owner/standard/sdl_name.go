package standard

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// derivedNames returns the names of the types that the gateway derives from a type of the SDL. of is a plan for a kind,
// a shape for an object, and the descriptor of an enum otherwise.
func derivedNames(name string, of any) (out []string) {
	switch of.(type) {
	case *plan:
		for _, suffix := range []string{
			"Connection", "Edge", "Change", "Filter", "Order", "OrderField", "Summary", "Aggregate", "GroupBy", "Preview",
		} {
			out = append(out, name+suffix)
		}
		for _, changed := range []string{
			"Create" + name, "Update" + name, "Patch" + name, "Upsert" + name, "Delete" + name, "Update" + name + "Status",
			"Patch" + name + "Status", "Apply" + name, "Delete" + name + "s", "Patch" + name + "s",
		} {
			out = append(out, changed+"Input", changed+"Payload")
		}
	case *shape:
		out = []string{name + "Input", name + "Patch", name + "Filter"}
	default:
		out = []string{name + "Filter", name + "ListFilter"}
	}
	return out
}

// take marks the name of a type, and the names that are derived from it, as used.
func (w *sdlWriter) take(name string, of any) {
	w.names[name] = of
	for _, derived := range derivedNames(name, of) {
		w.derived[derived] = true
	}
}

// free reports whether no type has a name, and whether the same is true of the names that are derived from it.
func (w *sdlWriter) free(name string, of any) bool {
	if w.names[name] != nil || w.derived[name] {
		return false
	}
	return !slices.ContainsFunc(derivedNames(name, of), func(derived string) bool {
		return w.names[derived] != nil || w.derived[derived]
	})
}

// allowed returns a name for a type that is not reserved. If the name of the kind is reserved, the result may be
// reserved too; then the kind cannot be served.
func (w *sdlWriter) allowed(name string) string {
	if w.limits.Reserved != nil && w.limits.Reserved(name) {
		return name + "Type"
	}
	return name
}

// identity is the name that a field of an object cannot have in the SDL. Only resources have a field of this name.
const identity = "id"

// fieldName returns the name of a field in the SDL. path is the path of the object. If the name differs from the one in
// manifests, fieldName adds a note.
func (w *sdlWriter) fieldName(s *shape, f *field, path string) string {
	name := w.sdlName(s, f)
	if name != f.name {
		w.out.Notes = append(w.out.Notes, Omitted{Path: path + "." + f.name, Why: fmt.Sprintf(
			"the field is %s in the SDL, because only resources have a field %s there; it stays %s in manifests", name, identity, f.name)})
	}
	return name
}

// sdlName returns the name of a field in the SDL: for a field id, the name of the object and Id.
func (w *sdlWriter) sdlName(s *shape, f *field) string {
	if f.name != identity {
		return f.name
	}
	of := strings.ReplaceAll(string(s.Name()), "_", "")
	if s == w.plan.spec || s == w.plan.status {
		of = w.plan.name
	}
	base := lowerFirst(of) + "Id"
	if !graphName.MatchString(base) {
		base = "ownId"
	}
	name := base
	for i := 2; slices.ContainsFunc(s.fields, func(other *field) bool { return other.name == name }); i++ {
		name = base + strconv.Itoa(i)
	}
	return name
}

// stored returns the directive of a field whose name in manifests is not its name in the SDL. It begins with a space.
func (w *sdlWriter) stored(s *shape, f *field) string {
	if w.sdlName(s, f) == f.name {
		return ""
	}
	return " @stored(as: " + quoted(f.name) + ")"
}
