package kinds

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

// DerivedTypes returns the names of the types that are derived from a kind, now or possibly in a later release. Authors
// cannot use them.
func DerivedTypes(kind string) []string {
	out := []string{
		kind + "Connection",
		kind + "Edge",
		kind + "Change",
		kind + "Filter",
		kind + "Order",
		kind + "OrderField",
	}
	for _, verb := range []string{"Create", "Update", "Patch", "Upsert", "Delete"} {
		out = append(out, verb+kind+"Input", verb+kind+"Payload")
	}
	for _, suffix := range []string{"Summary", "Aggregate", "GroupBy", "Preview"} {
		out = append(out, kind+suffix)
	}
	for _, verb := range []string{
		"Update" + kind + "Status",
		"Patch" + kind + "Status",
		"Apply" + kind,
		"Delete" + kind + "s",
		"Patch" + kind + "s",
	} {
		out = append(out, verb+"Input", verb+"Payload")
	}
	return out
}

// InputType returns the name of the input type derived from an object type.
func InputType(object string) string { return object + "Input" }

// PatchType returns the name of the patch type derived from an object type.
func PatchType(object string) string { return object + "Patch" }

// FilterType returns the name of the filter type for an object type, an enum or a scalar.
func FilterType(name string) string { return name + "Filter" }

// ListFilterType returns the name of the filter type for lists of an enum or a scalar.
func ListFilterType(enum string) string { return enum + "ListFilter" }

// derivedFromType returns the names of the types that are derived from a type that is not a kind.
func derivedFromType(def *ast.Definition) []string {
	switch def.Kind {
	case ast.Object:
		return []string{InputType(def.Name), PatchType(def.Name), FilterType(def.Name)}
	case ast.Enum:
		return []string{FilterType(def.Name), ListFilterType(def.Name)}
	}
	return nil
}

// isAPI reports whether the API has a type with this name, independent of the kinds.
func (l *loader) isAPI(name string) bool { return l.api.Definitions.ForName(name) != nil }

// derivedFrom describes the author's type from which a type with this name is derived; "" if there is none.
func (l *loader) derivedFrom(name string) string {
	if kind, ok := l.derived[name]; ok {
		return "kind " + kind
	}
	for _, suffix := range []string{"Input", "Patch", "ListFilter", "Filter"} {
		base, ok := strings.CutSuffix(name, suffix)
		if def := l.types[base]; ok && def != nil && def.Directives.ForName("resource") == nil &&
			slices.Contains(derivedFromType(def), name) {
			return "type " + base
		}
	}
	return ""
}

// reservedType returns the reason why authors cannot declare a type with this name; "" if they can.
func (l *loader) reservedType(name string) string {
	switch from := l.derivedFrom(name); {
	case l.isAPI(name), isReserved(name):
		return "the API has or will have a type of that name"
	case slices.Contains(scalars(), name), l.enums[name] != nil:
		return "it is a type of GraphQL or of the directives"
	case from != "":
		return "it is derived from " + from
	}
	return ""
}

// names maps each name to a description of the thing with this name.
type names map[string]string

// add records that the thing described by what has a name. If another thing has the name already, add returns the
// description of that thing; otherwise "".
func (n names) add(name, what string) string {
	if first, ok := n[name]; ok && first != what {
		return first
	}
	n[name] = what
	return ""
}

// typeNames reports each type from which a type would be derived whose name is taken: by a type of the API, or by a
// type that is derived from another type. For filter types of types that are not kinds, filterNames compares the names
// with the API.
func (l *loader) typeNames() {
	seen := names{}
	for _, def := range l.ordered() {
		derived, kind := derivedFromType(def), def.Directives.ForName("resource") != nil
		if kind {
			derived = DerivedTypes(def.Name)
		}
		for _, name := range derived {
			if l.isAPI(name) && (kind || !strings.HasSuffix(name, "Filter")) {
				l.report(def.Position, "type %s: the API has a type %s, which would be derived from it; give it another name", def.Name, name)
			}
			if other := seen.add(name, "type "+def.Name); other != "" {
				l.report(def.Position, "type %s: the derived type %s is derived from %s too", def.Name, name, other)
			}
		}
	}
}

// ordered returns the authors' types, ordered by file and line.
func (l *loader) ordered() []*ast.Definition {
	return slices.SortedFunc(maps.Values(l.types), func(a, b *ast.Definition) int {
		return cmp.Or(cmp.Compare(a.Position.Src.Name, b.Position.Src.Name), a.Position.Start-b.Position.Start)
	})
}

// kindNames reports kinds that share a name, ignoring case. It compares the names, singulars, plurals and short names
// of all kinds.
func (l *loader) kindNames(kinds []Kind) {
	seen := names{}
	for _, k := range kinds {
		if slices.Contains(besides(), k.Singular) {
			l.report(k.Definition.Position, "kind %s: the name is reserved: payloads and events have a field %s", k.Name, k.Singular)
		}
		for _, name := range []string{k.Singular, k.Plural} {
			if slices.Contains(commandWords(), strings.ToLower(name)) {
				l.report(k.Definition.Position, "kind %s: the name is reserved: %q is a word of the command line", k.Name, name)
			}
		}
		for _, name := range append([]string{k.Name, k.Singular, k.Plural}, k.ShortNames...) {
			if other := seen.add(strings.ToLower(name), "kind "+k.Name); other != "" && name != "" {
				l.report(
					k.Definition.Position,
					"kind %s: %q means %s too, in some case of its letters",
					k.Name,
					name,
					other,
				)
			}
		}
	}
}

func (l *loader) fileName(f *ast.Source) {
	if base, ok := strings.CutSuffix(path.Base(f.Name), ".graphqls"); !ok || !fileForm.MatchString(base) {
		l.report(&ast.Position{Src: f, Line: 1}, "the file's name: lower case letters, digits and _ that begin with a letter are wanted, and the ending .graphqls")
	}
}

// rootFields reports root fields with the same name.
func (l *loader) rootFields(kinds []Kind) {
	roots := map[string]names{"Query": {}, "Mutation": {}, "Subscription": {}}
	claim := func(at *ast.Position, root, field, owner string) {
		what := root + "." + field + " of " + owner
		if other := roots[root].add(field, what); other != "" && at != nil {
			l.report(at, "%s: %s has that name too", what, other)
		}
	}
	for root := range roots {
		for _, f := range l.api.Definitions.ForName(root).Fields {
			claim(nil, root, f.Name, "the API")
		}
	}
	for _, name := range laterQueries() {
		claim(nil, "Query", name, "the API")
	}
	for _, k := range kinds {
		if k.unread() {
			continue
		}
		at, owner := k.Definition.Position, "kind "+k.Name
		claim(at, "Query", k.Singular, owner)
		claim(at, "Query", k.Plural, owner)
		claim(at, "Subscription", k.Singular+"Changes", owner)
		for _, verb := range []string{"create", "update", "patch", "upsert", "delete"} {
			claim(at, "Mutation", verb+k.Name, owner)
		}
		claim(at, "Mutation", "update"+k.Name+"Status", owner)
	}
}

// singular returns the name of the field for one resource of a kind: "floatingIP" for FloatingIP, "apiKey" for APIKey.
func singular(kind string) string {
	upper := 0
	for upper < len(kind) && kind[upper] >= 'A' && kind[upper] <= 'Z' {
		upper++
	}
	if upper > 1 && upper < len(kind) && kind[upper] >= 'a' && kind[upper] <= 'z' {
		upper--
	}
	return strings.ToLower(kind[:upper]) + kind[upper:]
}
