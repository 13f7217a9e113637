package access

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/failure"
)

// Config configures access control. With the zero value, every caller may do everything.
type Config struct {
	// Enabled turns on access control by roles and bindings.
	Enabled bool
	// AdminGroup is a group whose members may do everything without a binding; empty for none.
	AdminGroup string
}

// Policy is a snapshot of all roles and bindings. It is immutable and safe for concurrent use.
type Policy struct {
	cfg      Config
	roles    map[string][]grant // by role; not yet restricted to the namespaces of a binding
	bindings map[string]storedBinding
	// sensitive is a text that identifies the set of sensitive kinds, which some built-in roles exclude.
	sensitive string
	// users and groups map the name of a user or a group to the bindings that name it.
	users, groups map[string][]string

	mu    sync.Mutex         // guards all below
	known map[string]*Rights // by name and groups of the caller
	// given caches rights by the names of the bindings that give them. So callers with the same bindings share one
	// value.
	given map[string]*Rights
}

// storedBinding is a binding with the body from which it was parsed.
type storedBinding struct {
	Binding
	body []byte
}

// maxKnown is the maximum number of callers whose rights a policy caches.
const maxKnown = 10_000

// NewPolicy returns the policy for stored roles and bindings. roles and bindings map names to stored bodies, which must
// not change afterwards. A role or binding whose body cannot be read gives no rights. before is the previous policy, or
// nil. A binding whose body is the same slice as in before is not parsed again.
func NewPolicy(cfg Config, kinds []descriptor.Kind, before *Policy, roles, bindings map[string][]byte) *Policy {
	p := &Policy{
		cfg:      cfg,
		roles:    map[string][]grant{},
		bindings: make(map[string]storedBinding, len(bindings)),
		users:    map[string][]string{},
		groups:   map[string][]string{},
		known:    map[string]*Rights{},
		given:    map[string]*Rights{},
	}
	var sensitive []string
	for i := range kinds {
		if kinds[i].Sensitive {
			sensitive = append(sensitive, kinds[i].Name)
		}
	}
	slices.Sort(sensitive)
	p.sensitive = " but " + strings.Join(sensitive, ",")
	for name, role := range BuiltIn(kinds) {
		p.roles[name] = grantsOf(role)
		for i := range p.roles[name] {
			p.roles[name][i].builtIn = name + p.sensitive
		}
	}
	for name, body := range roles {
		var role Role
		if p.roles[name] == nil && decode(body, &role) == nil {
			p.roles[name] = grantsOf(role)
		}
	}
	for name, body := range bindings {
		var b storedBinding
		if before != nil {
			b = before.bindings[name]
		}
		if len(body) == 0 || len(b.body) != len(body) || &b.body[0] != &body[0] {
			b = storedBinding{body: body}
			if decode(body, &b.Binding) != nil {
				continue
			}
		}
		p.bindings[name] = b
		for _, user := range b.Users {
			p.users[user] = append(p.users[user], name)
		}
		for _, group := range b.Groups {
			p.groups[group] = append(p.groups[group], name)
		}
	}
	return p
}

// RightsOf returns the rights of a caller. A nil id is an anonymous caller.
func (p *Policy) RightsOf(id *Identity) *Rights {
	if id == nil {
		return newRights(nil)
	}
	key := id.Name + "\n" + strings.Join(id.Groups, "\n")
	p.mu.Lock()
	defer p.mu.Unlock()
	if known := p.known[key]; known != nil {
		return known
	}
	if len(p.known) >= maxKnown {
		clear(p.known)
		clear(p.given)
	}
	out := p.rightsOf(id)
	p.known[key] = out
	return out
}

func (p *Policy) rightsOf(id *Identity) *Rights {
	groups := append([]string{Authenticated}, id.Groups...)
	if p.cfg.AdminGroup != "" && slices.Contains(groups, p.cfg.AdminGroup) {
		return Unlimited()
	}
	bindings := slices.Clone(p.users[id.Name])
	for _, group := range groups {
		bindings = append(bindings, p.groups[group]...)
	}
	slices.Sort(bindings)
	bindings = slices.Compact(bindings)
	key := strings.Join(bindings, "\n")
	if known := p.given[key]; known != nil {
		return known
	}
	var grants []grant
	for _, name := range bindings {
		grants = append(grants, p.grants(name)...)
	}
	out := newRights(grants)
	p.given[key] = out
	return out
}

// grants returns the grants that a binding gives.
func (p *Policy) grants(binding string) (out []grant) {
	b := p.bindings[binding]
	namespaces := listed(b.Namespaces)
	for _, role := range b.Roles {
		for _, g := range p.roles[role] {
			g.role = role
			out = append(out, g.within(namespaces))
		}
	}
	return out
}

// MayStore returns an error if a role or binding gives rights that its author lacks. It also refuses a binding of a
// role that does not exist, and a new role that a binding already names. An author who may ESCALATE may store all of
// these. Nobody may store a role with the name of a built-in role. k is the kind [RoleKind] or [BindingKind], and body
// is the resource to be stored.
func (p *Policy) MayStore(author *Rights, k *descriptor.Kind, name string, body []byte) error {
	if k.Name == RoleKind {
		if _, builtIn := BuiltIn(nil)[name]; builtIn {
			return &failure.Error{Code: failure.CodeBadUserInput, Kind: k.Name, Name: name, Path: "metadata.name", Message: fmt.Sprintf("every gateway has the role %q, which cannot be changed; take another name", name)}
		}
	}
	if author.all || author.Scope(k, VerbEscalate).Has("", name) {
		return nil
	}
	var grants []grant
	var binding Binding
	var role Role
	var err error
	if k.Name == RoleKind {
		if _, known := p.roles[name]; !known && p.binds(name) {
			return escalates(k, name, "there is a binding of a role of this name already, and only a caller who has ESCALATE may write the role for whoever it names")
		}
		err = decode(body, &role)
		grants = grantsOf(role)
	} else if err = decode(body, &binding); err == nil {
		for _, named := range binding.Roles {
			known, ok := p.roles[named]
			if !ok {
				return escalates(k, name, fmt.Sprintf("there is no role %q yet, and only a caller who has ESCALATE may bind one that others will write", named))
			}
			for i := range known {
				grants = append(grants, known[i].within(listed(binding.Namespaces)))
			}
		}
	}
	if err != nil {
		return escalates(k, name, "its spec cannot be read")
	}
	for i := range grants {
		if missing := author.missing(&grants[i]); missing != "" {
			return escalates(k, name, "it gives "+missing+", which you do not have")
		}
	}
	return nil
}

// binds reports whether a binding names the role. The role need not exist.
func (p *Policy) binds(role string) bool {
	for _, b := range p.bindings {
		if slices.Contains(b.Roles, role) {
			return true
		}
	}
	return false
}

func escalates(k *descriptor.Kind, name, why string) error {
	return &failure.Error{Code: failure.CodeForbidden, Verb: string(VerbEscalate), Kind: k.Name, Name: name, Path: "spec", Message: fmt.Sprintf("%s %q: %s; nobody gives rights without having them or the verb ESCALATE", k.Name, failure.Shorten(name), why)}
}

// missing describes a right that g gives and r lacks; "" if r has all of them.
func (r *Rights) missing(g *grant) string {
	kinds := []string{""}
	if g.kinds != nil {
		kinds = sorted(g.kinds)
	}
	var wanted builder
	g.addTo(&wanted, false)
	scope := wanted.scope()
	for _, kind := range kinds {
		for _, v := range Verbs() {
			if g.verbs&bit(v) != 0 && !r.scope(kind, false, v).Covers(scope) {
				if kind == "" {
					kind = "all kinds"
				}
				return fmt.Sprintf("%s on %s", v, kind)
			}
		}
	}
	return ""
}

// Grant is a rule that gives a verb, with the users and groups who have the verb because of the rule.
type Grant struct {
	// Binding and Role are the names of the binding and the role. Both are empty for administrators of the
	// configuration.
	Binding, Role string
	// Rule is the number of the rule in the role, from 0.
	Rule          int
	Users, Groups []string
}

// Bindings returns the sorted names of the bindings in the scope.
func (p *Policy) Bindings(in *Scope) (out []string) {
	if in.Empty() {
		return nil
	}
	for name := range p.bindings {
		if in.Has("", name) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// Administrators returns the grants of the administrators that the configuration names. Their bindings and roles are
// empty.
func (p *Policy) Administrators() []Grant {
	if p.cfg.AdminGroup == "" {
		return nil
	}
	return []Grant{{Groups: []string{p.cfg.AdminGroup}}}
}

// Grants returns the grants by which the given bindings give a verb on a resource of a kind, in the order of bindings.
// If name is empty, it returns the grants on any resource of the namespace. If namespace is empty too, it returns the
// grants on any resource of the kind. k is nil for a verb that belongs to no kind.
func (p *Policy) Grants(
	bindings []string, v descriptor.Verb, k *descriptor.Kind, namespace, name string,
) (out []Grant) {
	for _, binding := range bindings {
		for _, g := range p.grants(binding) {
			if one := newRights([]grant{g}); one.reaches(v, k, namespace, name) {
				b := p.bindings[binding]
				out = append(out, Grant{Binding: binding, Role: g.role, Rule: g.rule, Users: b.Users, Groups: b.Groups})
			}
		}
	}
	return out
}

func (r *Rights) reaches(v descriptor.Verb, k *descriptor.Kind, namespace, name string) bool {
	if k == nil {
		return r.May(v)
	}
	scope := r.Scope(k, v)
	switch {
	case name != "":
		return scope.Has(namespace, name)
	case namespace != "":
		return scope.Touches(namespace)
	}
	return !scope.Empty()
}
