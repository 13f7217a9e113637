package access_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/failure"
)

func kinds() []descriptor.Kind {
	all := []descriptor.Verb{"GET", "LIST", "WATCH", "CREATE", "UPDATE", "PATCH", "UPSERT", "STATUS", "FINALIZE", "CONTROL", "DELETE"}
	return []descriptor.Kind{
		{Name: "Network", Scope: descriptor.Namespaced, Verbs: all},
		{Name: "Secret", Scope: descriptor.Namespaced, Verbs: append(all, "REVEAL"), Sensitive: true},
		{Name: "Site", Scope: descriptor.Global, Verbs: all},
		{Name: access.RoleKind, Scope: descriptor.Global, Verbs: all},
		{Name: access.BindingKind, Scope: descriptor.Global, Verbs: all},
	}
}

func kindOf(name string) *descriptor.Kind {
	for _, k := range kinds() {
		if k.Name == name {
			return &k
		}
	}
	return nil
}

// body is the JSON of a role or a binding.
func body(t *testing.T, spec any) []byte {
	t.Helper()
	raw, err := json.Marshal(map[string]any{"spec": spec})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// policy has roles by their rules, and bindings.
func policy(t *testing.T, roles map[string][]access.Rule, bindings ...access.Binding) *access.Policy {
	t.Helper()
	r, b := map[string][]byte{}, map[string][]byte{}
	for name, rules := range roles {
		r[name] = body(t, access.Role{Rules: rules})
	}
	for i, one := range bindings {
		b[fmt.Sprint("b", i)] = body(t, one)
	}
	return access.NewPolicy(access.Config{Enabled: true, AdminGroup: "token:admins"}, kinds(), nil, r, b)
}

func user(name string, groups ...string) *access.Identity {
	return &access.Identity{Name: name, Groups: groups}
}

// places are resources that tests ask for.
func places() (out []backend.Key) {
	for _, namespace := range []string{"a", "b", "c", "other"} {
		for _, name := range []string{"x", "y", "z", "other"} {
			out = append(out, backend.Key{Namespace: namespace, Name: name})
		}
	}
	return out
}

// TestRights_ScopesAreSets holds And, Covers and Key against the resources that random scopes have.
func TestRights_ScopesAreSets(t *testing.T) {
	seed := rand.Uint64()
	if s, err := strconv.ParseUint(os.Getenv("SLUICE_TEST_SEED"), 10, 64); err == nil {
		seed = s
	}
	t.Logf("SLUICE_TEST_SEED=%d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	some := func(of ...string) (out []string) {
		for _, one := range of {
			if rnd.IntN(3) == 0 {
				out = append(out, one)
			}
		}
		return out
	}
	random := func() *access.Scope {
		var rules []access.Rule
		for range rnd.IntN(4) {
			rules = append(rules, access.Rule{Kinds: []string{"Network"}, Verbs: []descriptor.Verb{"GET"}, Namespaces: some("a", "b", "c"), Names: some("x", "y", "z")})
		}
		p := policy(t, map[string][]access.Rule{"r": rules}, access.Binding{Roles: []string{"r"}, Users: []string{"u"}, Namespaces: []string{"*"}})
		return p.RightsOf(user("u")).Scope(kindOf("Network"), "GET")
	}
	members := func(s *access.Scope) (out string) {
		for _, p := range places() {
			out += fmt.Sprint(s.Has(p.Namespace, p.Name), " ")
		}
		return out
	}
	for range 3000 {
		a, b := random(), random()
		both := a.And(b)
		covers := true
		for _, p := range places() {
			has, other := a.Has(p.Namespace, p.Name), b.Has(p.Namespace, p.Name)
			if both.Has(p.Namespace, p.Name) != (has && other) {
				t.Fatalf("%q and %q: %q has %v", a.Key(), b.Key(), both.Key(), p)
			}
			covers = covers && (has || !other)
			if a.HasNamespace(p.Namespace) && !has || has && !a.Touches(p.Namespace) {
				t.Fatalf("%q: namespace of %v", a.Key(), p)
			}
		}
		if a.Covers(b) != covers {
			t.Fatalf("%q covers %q: %v", a.Key(), b.Key(), a.Covers(b))
		}
		if a.Key() == b.Key() && members(a) != members(b) || both.Key() != b.And(a).Key() {
			t.Fatalf("keys %q and %q, %q and %q", a.Key(), b.Key(), both.Key(), b.And(a).Key())
		}
		if a.Empty() != !strings.Contains(members(a), "true") {
			t.Fatalf("%q is empty: %v", a.Key(), a.Empty())
		}
	}
}

func TestRights_BuiltInRolesAreWhatTheirNamesSay(t *testing.T) {
	for role, want := range map[string]string{
		"viewer":     "Network GET LIST WATCH; Secret; Site GET LIST WATCH; AccessRole; AccessBinding; ",
		"editor":     "Network GET LIST WATCH CREATE UPDATE PATCH UPSERT FINALIZE DELETE; Secret GET LIST WATCH CREATE UPDATE PATCH UPSERT FINALIZE DELETE; Site GET LIST WATCH CREATE UPDATE PATCH UPSERT FINALIZE DELETE; AccessRole; AccessBinding; ",
		"controller": "Network GET LIST WATCH STATUS FINALIZE CONTROL; Secret; Site GET LIST WATCH STATUS FINALIZE CONTROL; AccessRole; AccessBinding; ",
		"admin": "Network GET LIST WATCH CREATE UPDATE PATCH UPSERT STATUS FINALIZE CONTROL DELETE; Secret GET LIST WATCH CREATE UPDATE PATCH UPSERT STATUS FINALIZE CONTROL DELETE REVEAL; Site GET LIST WATCH CREATE UPDATE PATCH UPSERT STATUS FINALIZE CONTROL DELETE; " +
			"AccessRole GET LIST WATCH CREATE UPDATE PATCH UPSERT STATUS FINALIZE CONTROL DELETE ESCALATE; AccessBinding GET LIST WATCH CREATE UPDATE PATCH UPSERT STATUS FINALIZE CONTROL DELETE ESCALATE; ",
	} {
		p := policy(t, nil, access.Binding{Roles: []string{role}, Users: []string{"u"}, Namespaces: []string{"*"}})
		got := ""
		for _, k := range kinds() {
			got += k.Name
			for _, v := range p.RightsOf(user("u")).UsableVerbs(&k) {
				got += " " + string(v)
			}
			got += "; "
		}
		if got != want {
			t.Errorf("%s:\n%s\nwant\n%s", role, got, want)
		}
		for _, v := range []descriptor.Verb{access.VerbCatalogue, access.VerbExport} {
			if p.RightsOf(user("u")).May(v) != (role == "admin") {
				t.Errorf("%s: %s is %v", role, v, role != "admin")
			}
		}
	}
}

func TestRights_WhoHasWhichRights(t *testing.T) {
	roles := map[string][]access.Rule{
		"reader":   {{Kinds: []string{"*"}, Verbs: []descriptor.Verb{"GET"}}},
		"one":      {{Kinds: []string{"Network"}, Verbs: []descriptor.Verb{"*"}, Names: []string{"x"}}},
		"narrowed": {{Kinds: []string{"Network"}, Verbs: []descriptor.Verb{"GET"}, Namespaces: []string{"a", "b"}}},
		"exporter": {{Kinds: []string{"*"}, Verbs: []descriptor.Verb{access.VerbExport}}},
		"narrow":   {{Kinds: []string{"Network"}, Verbs: []descriptor.Verb{access.VerbExport}}},
	}
	p := policy(t, roles,
		access.Binding{Roles: []string{"reader"}, Users: []string{"u"}, Namespaces: []string{"a"}},
		access.Binding{Roles: []string{"one"}, Groups: []string{"g"}, Namespaces: []string{"*"}},
		access.Binding{Roles: []string{"narrowed"}, Users: []string{"n"}, Namespaces: []string{"b", "c"}},
		access.Binding{Roles: []string{"reader"}, Groups: []string{access.Authenticated}, Namespaces: []string{"shared"}},
		access.Binding{Roles: []string{"exporter"}, Users: []string{"e"}, Namespaces: []string{"*"}},
		access.Binding{Roles: []string{"exporter"}, Users: []string{"here"}, Namespaces: []string{"a"}},
		access.Binding{Roles: []string{"narrow"}, Users: []string{"narrow"}, Namespaces: []string{"*"}},
		access.Binding{Roles: []string{"absent"}, Users: []string{"lost"}, Namespaces: []string{"*"}},
	)
	for _, c := range []struct {
		id        *access.Identity
		kind      string
		namespace string
		name      string
		want      bool
	}{
		{user("u"), "Network", "a", "x", true},
		{user("u"), "Network", "b", "x", false},
		{user("u"), "Site", "", "x", false}, // rules in namespaces have no GLOBAL kinds
		{user("other", "g"), "Network", "b", "x", true},
		{user("other", "g"), "Network", "b", "y", false},
		{user("g"), "Network", "b", "x", false}, // a user is no group
		{user("other", "u"), "Network", "a", "x", false},
		{user("n"), "Network", "a", "x", false}, // only the binding's namespaces
		{user("n"), "Network", "b", "x", true},
		{user("n"), "Network", "c", "x", false},
		{user("anybody"), "Secret", "shared", "x", true},
		{user("lost"), "Network", "a", "x", false},
		{user("root", "token:admins"), access.BindingKind, "", "x", true},
		{nil, "Network", "shared", "x", false},
	} {
		rights := p.RightsOf(c.id)
		if got := rights.Sees(kindOf(c.kind), backend.Key{Kind: c.kind, Namespace: c.namespace, Name: c.name}); got != c.want {
			t.Errorf("%+v sees %s %s/%s: %v", c.id, c.kind, c.namespace, c.name, got)
		}
	}
	for name, want := range map[string]bool{"e": true, "here": false, "narrow": false, "u": false} {
		if p.RightsOf(user(name)).May(access.VerbExport) != want {
			t.Errorf("%s may export: %v", name, !want)
		}
	}
	if a, b := p.RightsOf(user("u")).Key(), p.RightsOf(user("anybody")).Key(); a == b {
		t.Errorf("different rights have the key %q", a)
	}
	if a, b := p.RightsOf(user("anybody")).Key(), p.RightsOf(user("somebody", "h")).Key(); a != b {
		t.Errorf("equal rights have the keys %q and %q", a, b)
	}
}

// TestRights_NobodyGivesWhatTheyDoNotHave has authors of roles and bindings who want more.
func TestRights_NobodyGivesWhatTheyDoNotHave(t *testing.T) {
	author := []access.Rule{{Kinds: []string{access.RoleKind, access.BindingKind}, Verbs: []descriptor.Verb{"*"}}}
	plain := append(author[:0:0], access.Rule{Kinds: author[0].Kinds, Verbs: []descriptor.Verb{"GET", "CREATE", "UPDATE"}}, access.Rule{Kinds: []string{"Network"}, Verbs: []descriptor.Verb{"GET", "LIST"}, Namespaces: []string{"a"}})
	p := policy(t, map[string][]access.Rule{"author": plain, "escalator": author, "small": {{Kinds: []string{"Network"}, Verbs: []descriptor.Verb{"GET"}}}},
		access.Binding{Roles: []string{"deleted"}, Users: []string{"x"}, Namespaces: []string{"*"}},
		access.Binding{Roles: []string{"author"}, Users: []string{"u"}, Namespaces: []string{"*"}},
		access.Binding{Roles: []string{"escalator"}, Users: []string{"e"}, Namespaces: []string{"*"}})
	role := func(r ...access.Rule) any { return access.Role{Rules: r} }
	get := []descriptor.Verb{"GET"}
	for what, c := range map[string]struct {
		kind, name string
		spec       any
		says       string // empty: it is allowed
	}{
		"what the author has":      {access.RoleKind, "r", role(access.Rule{Kinds: []string{"Network"}, Verbs: get, Namespaces: []string{"a"}}), ""},
		"a name in it":             {access.RoleKind, "r", role(access.Rule{Kinds: []string{"Network"}, Verbs: get, Namespaces: []string{"a"}, Names: []string{"x"}}), ""},
		"another namespace":        {access.RoleKind, "r", role(access.Rule{Kinds: []string{"Network"}, Verbs: get, Namespaces: []string{"a", "b"}}), "GET on Network"},
		"all namespaces":           {access.RoleKind, "r", role(access.Rule{Kinds: []string{"Network"}, Verbs: get}), "GET on Network"},
		"another verb":             {access.RoleKind, "r", role(access.Rule{Kinds: []string{"Network"}, Verbs: []descriptor.Verb{"GET", "DELETE"}, Namespaces: []string{"a"}}), "DELETE on Network"},
		"all verbs":                {access.RoleKind, "r", role(access.Rule{Kinds: []string{"Network"}, Verbs: []descriptor.Verb{"*"}, Namespaces: []string{"a"}}), "WATCH on Network"},
		"another kind":             {access.RoleKind, "r", role(access.Rule{Kinds: []string{"Secret"}, Verbs: get, Namespaces: []string{"a"}}), "GET on Secret"},
		"a kind that nobody knows": {access.RoleKind, "r", role(access.Rule{Kinds: []string{"Future"}, Verbs: get, Namespaces: []string{"a"}}), "GET on Future"},
		"all kinds":                {access.RoleKind, "r", role(access.Rule{Kinds: []string{"*"}, Verbs: get, Namespaces: []string{"a"}}), "GET on all kinds"},
		"one rule too many":        {access.RoleKind, "r", role(access.Rule{Kinds: []string{"Network"}, Verbs: get, Namespaces: []string{"a"}}, access.Rule{Kinds: []string{"Site"}, Verbs: get}), "GET on Site"},
		"escalation":               {access.RoleKind, "r", role(access.Rule{Kinds: []string{access.RoleKind}, Verbs: []descriptor.Verb{access.VerbEscalate}}), "ESCALATE on AccessRole"},
		"a role that was deleted and is still bound": {access.RoleKind, "deleted", role(access.Rule{Kinds: []string{"Network"}, Verbs: get, Namespaces: []string{"a"}}), "a binding of a role of this name already"},
		"a built-in name":                   {access.RoleKind, "admin", role(), "every gateway has the role"},
		"a binding in the author's places":  {access.BindingKind, "b", access.Binding{Roles: []string{"small"}, Users: []string{"x"}, Namespaces: []string{"a"}}, ""},
		"a binding elsewhere":               {access.BindingKind, "b", access.Binding{Roles: []string{"small"}, Users: []string{"u"}, Namespaces: []string{"b"}}, "GET on Network"},
		"a binding of admin":                {access.BindingKind, "b", access.Binding{Roles: []string{"admin"}, Users: []string{"u"}, Namespaces: []string{"a"}}, "GET on all kinds"},
		"a binding of viewer":               {access.BindingKind, "b", access.Binding{Roles: []string{"viewer"}, Users: []string{"u"}, Namespaces: []string{"a"}}, "WATCH on Network"},
		"a role that others will write":     {access.BindingKind, "b", access.Binding{Roles: []string{"tomorrow"}, Users: []string{"u"}, Namespaces: []string{"a"}}, "there is no role"},
		"a good role and one that does not": {access.BindingKind, "b", access.Binding{Roles: []string{"small", "tomorrow"}, Users: []string{"u"}, Namespaces: []string{"a"}}, "there is no role"},
	} {
		err := p.MayStore(p.RightsOf(user("u")), kindOf(c.kind), c.name, body(t, c.spec))
		var known *failure.Error
		if c.says == "" && err != nil || c.says != "" && (!errors.As(err, &known) || !strings.Contains(known.Message, c.says)) {
			t.Errorf("%s: %v, want %q", what, err, c.says)
		}
		if builtIn := c.name == "admin"; (p.MayStore(p.RightsOf(user("e")), kindOf(c.kind), c.name, body(t, c.spec)) == nil) == builtIn {
			t.Errorf("%s: by a caller who may escalate", what)
		}
	}
}

func TestRights_GrantsSayWhoMay(t *testing.T) {
	p := policy(t, map[string][]access.Rule{"r": {{Kinds: []string{"Site"}, Verbs: []descriptor.Verb{"GET"}}, {Kinds: []string{"Network"}, Verbs: []descriptor.Verb{"GET"}, Names: []string{"x"}}}},
		access.Binding{Roles: []string{"r", "viewer"}, Users: []string{"u"}, Groups: []string{"g"}, Namespaces: []string{"a"}})
	text := func(v descriptor.Verb, k *descriptor.Kind, namespace, name string) (out string) {
		for _, g := range append(p.Administrators(), p.Grants(p.Bindings(access.Everything()), v, k, namespace, name)...) {
			out += fmt.Sprint(g.Binding, " ", g.Role, " ", g.Rule, " ", g.Users, " ", g.Groups, "; ")
		}
		return out
	}
	for got, want := range map[string]string{
		text("GET", kindOf("Network"), "a", "x"): " 0 [] [token:admins]; b0 r 1 [u] [g]; b0 viewer 0 [u] [g]; ",
		text("GET", kindOf("Network"), "a", "y"): " 0 [] [token:admins]; b0 viewer 0 [u] [g]; ",
		text("GET", kindOf("Network"), "b", ""):  " 0 [] [token:admins]; ",
		text("GET", kindOf("Site"), "", "x"):     " 0 [] [token:admins]; ",
		text(access.VerbExport, nil, "", ""):     " 0 [] [token:admins]; ",
	} {
		if strings.ReplaceAll(got, "  ", " ") != strings.ReplaceAll(want, "  ", " ") {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Callers with the same bindings share their rights: what one role gives can be large.
func TestRights_CallersWithTheSameBindingsShareTheirRights(t *testing.T) {
	p := policy(t, map[string][]access.Rule{"r": {{Kinds: []string{"Network"}, Verbs: []descriptor.Verb{"GET"}}}},
		access.Binding{Roles: []string{"r"}, Groups: []string{access.Authenticated}, Namespaces: []string{"a"}},
		access.Binding{Roles: []string{"r"}, Users: []string{"u"}, Namespaces: []string{"b"}})
	if p.RightsOf(user("x")) != p.RightsOf(user("y", "g")) {
		t.Error("equal bindings, other rights")
	}
	if p.RightsOf(user("x")) == p.RightsOf(user("u")) || !p.RightsOf(user("u")).Scope(kindOf("Network"), "GET").HasNamespace("b") {
		t.Error("other bindings, the same rights")
	}
}

func FuzzPolicy(f *testing.F) {
	f.Add([]byte(`{"spec":{"rules":[{"kinds":["*"],"verbs":["*"]}]}}`), []byte(`{"spec":{"roles":["r"],"users":["u"],"namespaces":["*"]}}`))
	f.Add([]byte(`{"spec":{"rules":[{"kinds":["Network"],"verbs":["NONE"],"namespaces":[],"names":[]}]}}`), []byte(`{"spec":{"roles":["r","viewer"],"groups":["g"],"namespaces":["a"]}}`))
	f.Add([]byte(`{"spec":`), []byte(`[]`))
	f.Fuzz(func(t *testing.T, role, binding []byte) {
		p := access.NewPolicy(access.Config{Enabled: true}, kinds(), nil, map[string][]byte{"r": role}, map[string][]byte{"b": binding})
		if got := p.RightsOf(user("somebody else")); !strings.Contains(string(binding), "system:authenticated") {
			for _, k := range kinds() {
				if used := got.UsableVerbs(&k); len(used) > 0 && !strings.Contains(string(binding), "somebody") && !strings.Contains(string(binding), `\u`) {
					t.Errorf("%s %s: %v", role, binding, used)
				}
			}
		}
	})
}
