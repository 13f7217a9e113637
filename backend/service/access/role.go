package access

import (
	"encoding/json"
	"slices"

	"github.com/sluicegw/sluice/backend/descriptor"
)

// The kinds of the product that give rights. Both are GLOBAL.
const (
	RoleKind    = "AccessRole"
	BindingKind = "AccessBinding"
)

// GivesRights reports whether a kind gives rights: AccessRole and AccessBinding do.
func GivesRights(kind string) bool { return kind == RoleKind || kind == BindingKind }

// Wildcard in a list of a rule or binding means all.
const Wildcard = "*"

// Authenticated is the group of every authenticated caller. No source of identities gives groups
// that begin with "system:".
const Authenticated = "system:authenticated"

// Rule is a part of a role: verbs that may be used on resources of kinds. An absent list of
// namespaces or names means all.
type Rule struct {
	Kinds      []string          `json:"kinds"`
	Verbs      []descriptor.Verb `json:"verbs"`
	Namespaces []string          `json:"namespaces"`
	Names      []string          `json:"names"`
}

// Role is the spec of an AccessRole.
type Role struct {
	Rules []Rule `json:"rules"`
}

// Binding is the spec of an AccessBinding: who has which roles in which namespaces. Rules apply to
// GLOBAL kinds only if the binding has all namespaces.
type Binding struct {
	Roles      []string `json:"roles"`
	Users      []string `json:"users"`
	Groups     []string `json:"groups"`
	Namespaces []string `json:"namespaces"`
}

// The built-in roles, which are not stored.
const (
	// Viewer reads every kind, except the sensitive ones, AccessRole and AccessBinding.
	Viewer = "viewer"
	// Editor also writes them, and reads and writes the sensitive ones. It does not reveal their values.
	Editor = "editor"
	// Controller reads what a viewer does, writes statuses and finalizers, and takes kinds over.
	Controller = "controller"
	// Admin may do everything.
	Admin = "admin"
)

// BuiltIn returns the built-in roles for the kinds of a catalogue.
func BuiltIn(kinds []descriptor.Kind) map[string]Role {
	var plain, all []string
	for i := range kinds {
		k := &kinds[i]
		if GivesRights(k.Name) {
			continue
		}
		all = append(all, k.Name)
		if !k.Sensitive {
			plain = append(plain, k.Name)
		}
	}
	read := []descriptor.Verb{descriptor.VerbGet, descriptor.VerbList, descriptor.VerbWatch}
	write := []descriptor.Verb{
		descriptor.VerbCreate, descriptor.VerbUpdate, descriptor.VerbPatch, descriptor.VerbUpsert,
		descriptor.VerbDelete, descriptor.VerbFinalize,
	}
	control := []descriptor.Verb{descriptor.VerbStatus, descriptor.VerbFinalize, descriptor.VerbControl}
	return map[string]Role{
		Viewer:     {Rules: []Rule{{Kinds: plain, Verbs: read}}},
		Editor:     {Rules: []Rule{{Kinds: all, Verbs: slices.Concat(read, write)}}},
		Controller: {Rules: []Rule{{Kinds: plain, Verbs: slices.Concat(read, control)}}},
		Admin:      {Rules: []Rule{{Kinds: []string{Wildcard}, Verbs: []descriptor.Verb{Wildcard}}}},
	}
}

// grant is the right that one rule of a role gives through a binding. A nil list means
// all.
type grant struct {
	role string
	rule int
	// builtIn is a text for the kinds of a built-in role that is the same at all gateways; empty
	// for other roles.
	builtIn           string
	kinds             nameSet
	verbs             verbs
	namespaces, names nameSet
}

// grantsOf returns what a role gives in all namespaces. It is not nil.
func grantsOf(role Role) []grant {
	out := make([]grant, len(role.Rules))
	for i, r := range role.Rules {
		out[i] = grant{
			rule:       i,
			kinds:      listed(r.Kinds),
			verbs:      setOf(r.Verbs...),
			namespaces: optional(r.Namespaces),
			names:      optional(r.Names),
		}
	}
	return out
}

// within returns the grant restricted to some namespaces, nil for all.
func (g grant) within(namespaces nameSet) grant {
	switch {
	case namespaces == nil:
	case g.namespaces == nil:
		g.namespaces = namespaces
	default:
		g.namespaces = both(g.namespaces, namespaces)
	}
	return g
}

// listed returns the names of a list, nil if it names all.
func listed(list []string) nameSet {
	out := nameSet{}
	for _, one := range list {
		if one == Wildcard {
			return nil
		}
		out[one] = struct{}{}
	}
	return out
}

// optional is like listed, but an absent list means all.
func optional(list []string) nameSet {
	if len(list) == 0 {
		return nil
	}
	return listed(list)
}

// has reports whether a list of a grant has a name.
func (n nameSet) has(name string) bool {
	_, ok := n[name]
	return n == nil || ok
}

// addTo adds the resources of a kind in the grant to a builder.
func (g *grant) addTo(b *builder, global bool) {
	if g.namespaces == nil {
		b.add("", g.names, true)
		return
	}
	if global {
		return
	}
	for namespace := range g.namespaces {
		b.add(namespace, g.names, false)
	}
}

// decode reads the spec of a stored role or binding.
func decode(body []byte, spec any) error {
	return json.Unmarshal(body, &struct {
		Spec any `json:"spec"`
	}{spec})
}
