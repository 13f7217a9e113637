package access

import (
	"encoding/json"
	"slices"

	"github.com/sluicegw/sluice/backend/descriptor"
)

// The kinds of the gateway that give rights. Both are GLOBAL.
const (
	RoleKind    = "AccessRole"
	BindingKind = "AccessBinding"
)

// GivesRights reports whether resources of a kind give rights: the kind is AccessRole or AccessBinding.
func GivesRights(kind string) bool { return kind == RoleKind || kind == BindingKind }

// Wildcard stands for everything in a list of a rule or a binding.
const Wildcard = "*"

// Authenticated is the group of all authenticated callers. Names of groups from other sources never begin with
// "system:".
const Authenticated = "system:authenticated"

// Rule is a part of a role. It gives verbs on resources of some kinds. If Namespaces is empty, the rule applies to all
// namespaces. If Names is empty, it applies to all names.
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

// Binding is the spec of an AccessBinding. It gives roles to users and groups in some namespaces. Rules apply to GLOBAL
// kinds only if the binding is for all namespaces.
type Binding struct {
	Roles      []string `json:"roles"`
	Users      []string `json:"users"`
	Groups     []string `json:"groups"`
	Namespaces []string `json:"namespaces"`
}

// The built-in roles, which are not stored.
const (
	// Viewer may read all kinds except sensitive ones, AccessRole and AccessBinding.
	Viewer = "viewer"
	// Editor may read and write all kinds except AccessRole and AccessBinding. It may not reveal sensitive values.
	Editor = "editor"
	// Controller may read what Viewer may read, write statuses and finalizers, and take control of kinds.
	Controller = "controller"
	// Admin may do everything.
	Admin = "admin"
)

// BuiltIn returns the built-in roles, by name, for the kinds of a catalogue.
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

// grant is a rule of a role as a binding gives it. A nil nameSet contains every name.
type grant struct {
	role string
	rule int
	// builtIn is a text that stands for the kinds of a built-in role and is the same on all gateways; empty for other
	// roles.
	builtIn           string
	kinds             nameSet
	verbs             verbs
	namespaces, names nameSet
}

// grantsOf returns the grants of a role in all namespaces. The result is not nil, even if it is empty.
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

// within returns the grant restricted to some namespaces; nil means no restriction.
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

// listed returns the set of the names in a list. If the list contains the wildcard, it returns nil, the set of all
// names.
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

// optional is like listed, but returns nil for an empty list too.
func optional(list []string) nameSet {
	if len(list) == 0 {
		return nil
	}
	return listed(list)
}

// has reports whether the set contains a name. The nil set contains every name.
func (n nameSet) has(name string) bool {
	_, ok := n[name]
	return n == nil || ok
}

// addTo adds the resources to which the grant applies to b. global reports whether the kind of the resources is GLOBAL.
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
