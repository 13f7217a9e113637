package release

import (
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/graph/kinds"
)

// Names reports which names exist in a version, see [Version.Names].
type Names struct {
	// Schema is a result of [Version.View].
	Schema *ast.Schema
	// declared maps the names of kinds to their declarations in the sources of the version. The kinds that a gateway
	// adds to each catalogue are not in it.
	declared map[string]kinds.Declared
}

// Names returns the names that exist in the version. view must be a result of [Version.View].
func (v *Version) Names(view *ast.Schema) Names { return Names{Schema: view, declared: v.declared} }

// Kind reports whether the version has a kind.
func (n Names) Kind(name string) bool { return n.Schema.Types[name] != nil }

// Field reports whether a type has a field in answers or in inputs. A write-only field exists only in inputs.
func (n Names) Field(typ, field string) bool {
	return n.has(typ, field) || n.has(kinds.InputType(typ), field) || n.has(kinds.PatchType(typ), field)
}

func (n Names) has(typ, field string) bool {
	def := n.Schema.Types[typ]
	return def != nil && def.Fields.ForName(field) != nil
}

// Value reports whether an enum has a value. An enum used only by write-only fields exists only as an input type, which
// has another name.
func (n Names) Value(enum, value string) bool {
	def := n.Schema.Types[enum]
	return def != nil && def.EnumValues.ForName(value) != nil
}

// ShortName reports whether a kind has a short name. It returns true for the kinds that a gateway adds to each
// catalogue.
func (n Names) ShortName(k *descriptor.Kind, name string) bool {
	d, known := n.declared[k.Name]
	return !known || slices.Contains(d.ShortNames, name)
}

// SubKind reports whether a kind has a sub-kind. It returns true for the kinds that a gateway adds to each catalogue.
func (n Names) SubKind(k *descriptor.Kind, name string) bool {
	d, known := n.declared[k.Name]
	return !known || slices.Contains(d.SubKinds, name)
}

// Expires reports whether callers may set the time when resources of a kind expire.
func (n Names) Expires(k *descriptor.Kind) bool {
	for _, verb := range []string{"Create", "Update", "Patch", "Upsert"} {
		if n.has(verb+k.Name+"Input", "expiresAt") {
			return true
		}
	}
	return false
}

// Verb reports whether a kind has a verb. A kind has CONTROL if its status has conditions.
func (n Names) Verb(k *descriptor.Kind, verb descriptor.Verb) bool {
	switch verb {
	case descriptor.VerbGet:
		return n.has("Query", k.Singular)
	case descriptor.VerbList:
		return n.has("Query", k.Plural)
	case descriptor.VerbWatch:
		return n.has("Subscription", k.Singular+"Changes")
	case descriptor.VerbStatus:
		return n.has("Mutation", "update"+k.Name+"Status")
	case descriptor.VerbCreate, descriptor.VerbUpdate, descriptor.VerbPatch, descriptor.VerbUpsert,
		descriptor.VerbDelete:
		return n.has("Mutation", strings.ToLower(string(verb))+k.Name)
	case descriptor.VerbFinalize:
		return n.has("Patch"+k.Name+"Input", "addFinalizers")
	case descriptor.VerbControl:
		if k.Status == nil || !n.has(k.Status.Name, "conditions") {
			return false
		}
	}
	d, known := n.declared[k.Name]
	return !known || d.Offers(verb)
}

// Filter reports whether filters of a kind accept a path. It returns true if the kind has no filters, because it offers
// neither LIST nor WATCH then.
func (n Names) Filter(k *descriptor.Kind, path string) bool {
	typ := kinds.FilterType(k.Name)
	if n.Schema.Types[typ] == nil {
		return true
	}
	part, rest, _ := strings.Cut(path, ".")
	s := map[string]*descriptor.Shape{"spec": k.Spec, "status": k.Status}[part]
	if !n.has(typ, part) {
		return false
	}
	for step := range strings.SplitSeq(rest, ".") {
		if s == nil {
			return false
		}
		f := s.Field(step)
		if f == nil || !n.has(kinds.FilterType(s.Name), f.InAPI()) {
			return false
		}
		s = f.Shape
	}
	return true
}

// Sort reports whether orders of a kind accept a path. It returns true for a kind that has no orders.
func (n Names) Sort(k *descriptor.Kind, path string) bool {
	def := n.Schema.Types[k.Name+"OrderField"]
	return def == nil || def.EnumValues.ForName(kinds.OrderValue(k.APIPath(path))) != nil
}

// Deprecated returns the reason of the deprecation of a field; empty if it is not deprecated.
func (n Names) Deprecated(typ, field string) string {
	for _, name := range []string{typ, kinds.InputType(typ)} {
		def := n.Schema.Types[name]
		if def == nil {
			continue
		}
		if f := def.Fields.ForName(field); f != nil {
			return reasonOf(f.Directives.ForName(deprecated))
		}
	}
	return ""
}

// noReason is the default reason of a deprecation, from the specification of GraphQL.
const noReason = "No longer supported"

func reasonOf(d *ast.Directive) string {
	if d == nil {
		return ""
	}
	at := slices.IndexFunc(d.Arguments, func(a *ast.Argument) bool { return a.Name == "reason" })
	if at < 0 {
		return noReason
	}
	return d.Arguments[at].Value.Raw
}
