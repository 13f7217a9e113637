package servicetest

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/graph/kinds/kindstest"
)

// AdminGroup is the group of administrators in tests of access control.
const AdminGroup = "token:admins"

// As returns a caller that a token authenticates.
func As(name string, groups ...string) access.Caller {
	return access.Caller{Identity: &access.Identity{Name: name, Source: "token", Groups: groups}}
}

// Admin returns an administrator.
func Admin() access.Caller { return As("token:root", AdminGroup) }

// PolicyKinds returns the kinds that give rights: AccessRole and AccessBinding.
func PolicyKinds(t testing.TB) (out []descriptor.Kind) {
	for _, k := range kindstest.Kinds(t) {
		if k.Name == access.RoleKind || k.Name == access.BindingKind {
			out = append(out, k)
		}
	}
	return out
}

// Guarded returns a running service with access control. indexMemory is [service.Config].IndexMemory.
func Guarded(t testing.TB, store backend.Store, indexMemory int64, kinds ...descriptor.Kind) *Fixture {
	t.Helper()
	return Running(t, service.Config{
		Kinds:       append(kinds, PolicyKinds(t)...),
		Store:       store,
		IndexMemory: indexMemory,
		Access:      access.Config{Enabled: true, AdminGroup: AdminGroup},
	})
}

// Running returns a service that runs until the test ends.
func Running(t testing.TB, cfg service.Config) *Fixture {
	t.Helper()
	svc, err := service.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	f := &Fixture{Service: svc, T: t}
	f.ServeIndexed()
	return f
}

// StorePolicy stores a role or a binding.
func (f *Fixture) StorePolicy(of, name string, spec any) {
	f.T.Helper()
	raw, err := json.Marshal(spec)
	if err == nil {
		_, err = f.Writer.Upsert(access.WithCaller(context.Background(), Admin()), service.UpsertRequest{
			Identity: kind.Identity{Kind: of, Name: name}, Spec: json.RawMessage(raw),
		})
	}
	if err != nil {
		f.T.Fatalf("%s %s: %v", of, name, err)
	}
}

// Role stores a role.
func (f *Fixture) Role(name string, rules ...access.Rule) {
	f.T.Helper()
	f.StorePolicy(access.RoleKind, name, access.Role{Rules: rules})
}

// Bind stores a binding.
func (f *Fixture) Bind(name string, b access.Binding) {
	f.T.Helper()
	f.StorePolicy(access.BindingKind, name, b)
}

// Give stores a role with the given rules, and binds token:u to it in all namespaces.
func (f *Fixture) Give(rules ...access.Rule) {
	f.T.Helper()
	f.Role("role", rules...)
	f.Bind("binding", access.Binding{Roles: []string{"role"}, Users: []string{"token:u"}, Namespaces: []string{"*"}})
}

// Allow returns a rule that allows verbs on a kind.
func Allow(kind string, verbs ...descriptor.Verb) access.Rule {
	return access.Rule{Kinds: []string{kind}, Verbs: verbs}
}

// Site returns a GLOBAL kind.
func Site() descriptor.Kind {
	k := Widget()
	k.Name = "Site"
	k.Singular = "site"
	k.Plural = "sites"
	k.Scope = descriptor.Global
	return k
}

// WidgetAtSite returns the kind Widget with a reference: the title of a widget is the name of a Site.
func WidgetAtSite() descriptor.Kind {
	k := Widget()
	k.References = []descriptor.Reference{{Path: "spec.title", Kind: "Site", Field: "site", Inverse: "widgets"}}
	return k
}

// WidgetIn returns the identity of a widget in a namespace.
func WidgetIn(namespace, name string) kind.Identity {
	return kind.Identity{Kind: "Widget", Namespace: &namespace, Name: name}
}

// UpsertWidget writes a widget as an administrator.
func (f *Fixture) UpsertWidget(id kind.Identity, title string) {
	f.T.Helper()
	if _, err := f.Writer.Upsert(access.WithCaller(context.Background(), Admin()), service.UpsertRequest{
		Identity: id, Spec: map[string]any{"title": title},
	}); err != nil {
		f.T.Fatal(err)
	}
}

// DeleteWidget deletes a widget as an administrator.
func (f *Fixture) DeleteWidget(id kind.Identity) {
	f.T.Helper()
	_, err := f.Writer.Delete(access.WithCaller(context.Background(), Admin()), service.DeleteRequest{Identity: id})
	if err != nil {
		f.T.Fatal(err)
	}
}

// CodeOf returns the code of an error; "" if it has none.
func CodeOf(err error) failure.Code {
	if known, ok := errors.AsType[*failure.Error](err); ok {
		return known.Code
	}
	return ""
}

// PolicyModel is a role and a binding. It decides on rights in the simplest way, as a reference for tests.
type PolicyModel struct {
	Rules []access.Rule // of one role
	// Namespaces are the namespaces of the binding.
	Namespaces []string
}

// Allows reports whether the role allows a verb on a resource. global reports whether the kind is GLOBAL.
func (m PolicyModel) Allows(v descriptor.Verb, k, namespace, name string, global bool) bool {
	has := func(list []string, one string) bool {
		return slices.Contains(list, "*") || slices.Contains(list, one)
	}
	for _, r := range m.Rules {
		verb := slices.Contains(r.Verbs, "*") || slices.Contains(r.Verbs, v)
		here := has(m.Namespaces, namespace) && (r.Namespaces == nil || has(r.Namespaces, namespace))
		if global {
			here = slices.Contains(m.Namespaces, "*") && (r.Namespaces == nil || slices.Contains(r.Namespaces, "*"))
		}
		if verb && here && has(r.Kinds, k) && (r.Names == nil || has(r.Names, name)) {
			return true
		}
	}
	return false
}

// Sees reports whether the role allows LIST and GET on a resource.
func (m PolicyModel) Sees(k, namespace, name string, global bool) bool {
	return m.Allows(descriptor.VerbList, k, namespace, name, global) &&
		m.Allows(descriptor.VerbGet, k, namespace, name, global)
}

// RandomPolicy returns a role with a few random rules, and a binding.
func RandomPolicy(rnd *rand.Rand) (m PolicyModel) {
	some := func(all ...string) (out []string) {
		for _, one := range all {
			if rnd.IntN(2) == 0 {
				out = append(out, one)
			}
		}
		if len(out) == 0 {
			out = all[:1]
		}
		return out
	}
	for range 1 + rnd.IntN(3) {
		r := access.Rule{
			Kinds: some("Widget", "Site", "*"),
			Verbs: []descriptor.Verb{descriptor.VerbGet, descriptor.VerbList},
		}
		if rnd.IntN(4) == 0 {
			r.Verbs = r.Verbs[rnd.IntN(2):][:1]
		}
		if rnd.IntN(2) == 0 {
			r.Namespaces = some("ns0", "ns1", "ns2", "nowhere")
		}
		if rnd.IntN(3) == 0 {
			r.Names = some("n1", "n2", "n5", "n30", "a", "b", "absent")
		}
		m.Rules = append(m.Rules, r)
	}
	m.Namespaces = [][]string{{"*"}, {"*"}, {"ns0"}, {"ns1", "ns2"}, {"ns0", "nowhere"}}[rnd.IntN(5)]
	return m
}
