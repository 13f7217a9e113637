package service_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/query"
	"github.com/sluicegw/sluice/backend/service/servicetest"
	"github.com/sluicegw/sluice/graph/kinds/kindstest"
)

func openMemory(t *testing.T) *memory.Store {
	t.Helper()
	store, err := memory.Open(memory.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

// give stores a role with these rules, and binds token:u to it in all namespaces.
func (f *fixture) give(rules ...access.Rule) {
	f.T.Helper()
	f.set(access.RoleKind, "role", access.Role{Rules: rules})
	f.set(access.BindingKind, "binding", access.Binding{Roles: []string{"role"}, Users: []string{"token:u"}, Namespaces: []string{"*"}})
}

func allow(kind string, verbs ...descriptor.Verb) access.Rule {
	return access.Rule{Kinds: []string{kind}, Verbs: verbs}
}

func in(namespace, name string) kind.Identity {
	return kind.Identity{Kind: "Widget", Namespace: &namespace, Name: name}
}

// TestAuthorize_AWriteShowsNothingThatTheCallerMayNotSee has callers with CREATE alone.
func TestAuthorize_AWriteShowsNothingThatTheCallerMayNotSee(t *testing.T) {
	f := guarded(t, openMemory(t), 0, servicetest.Widget())
	ctx, u := t.Context(), as("token:u")
	spec := map[string]any{"title": "x"}
	if _, err := f.Writer.Create(access.WithCaller(ctx, admin()), service.CreateRequest{Identity: in("a", "hidden"), Spec: spec}); err != nil {
		t.Fatal(err)
	}
	f.give(allow("Widget", "CREATE"))
	for _, dry := range []bool{true, false} {
		out, err := f.Writer.Create(access.WithCaller(ctx, u), service.CreateRequest{Identity: in("a", "new"), Spec: spec, DryRun: dry})
		if err != nil || out.Resource != nil || out.Outcome != service.Created {
			t.Errorf("a create without GET, dry run %v: %+v %v", dry, out, err)
		}
	}
	manifest := func(name, title string) service.ApplyRequest {
		return service.ApplyRequest{Manifest: `{"apiVersion":"example.org/v1","kind":"Widget","metadata":{"namespace":"a","name":"` + name + `"},"spec":{"title":"` + title + `"}}`}
	}
	for _, title := range []string{"x", "other"} { // equal to what is stored, or not
		for _, dry := range []bool{true, false} {
			req := manifest("hidden", title)
			req.DryRun = dry
			if out, err := f.Writer.Apply(access.WithCaller(ctx, u), req); code(err) != "ALREADY_EXISTS" {
				t.Errorf("an apply of what is hidden, %s: %+v %v", title, out, err)
			}
		}
	}
	if out, err := f.Writer.Apply(access.WithCaller(ctx, u), manifest("applied", "x")); err != nil || out.Resource != nil {
		t.Errorf("an apply that creates: %+v %v", out, err)
	}
	f.give(allow("Widget", "UPDATE", "PATCH", "UPSERT", "STATUS", "DELETE", "FINALIZE"))
	for _, name := range []string{"hidden", "absent"} { // the answer depends on the policy alone
		_, update := f.Writer.Update(access.WithCaller(ctx, u), service.UpdateRequest{Identity: in("a", name), ExpectedRevision: "1-1", Spec: spec})
		_, patch := f.Writer.Patch(access.WithCaller(ctx, u), service.PatchRequest{Identity: in("a", name), ExpectedRevision: "1-1", Patch: spec})
		_, upsert := f.Writer.Upsert(access.WithCaller(ctx, u), service.UpsertRequest{Identity: in("a", name), Spec: spec})
		_, status := f.Writer.UpdateStatus(access.WithCaller(ctx, u), service.StatusRequest{Identity: in("a", name), ExpectedRevision: "1-1", Status: map[string]any{}})
		_, remove := f.Writer.Delete(access.WithCaller(ctx, u), service.DeleteRequest{Identity: in("a", name)})
		_, apply := f.Writer.Apply(access.WithCaller(ctx, u), manifest(name, "x"))
		for what, err := range map[string]error{"update": update, "patch": patch, "upsert": upsert, "status": status, "delete": remove, "apply": apply} {
			if code(err) != "FORBIDDEN" || err == nil || !strings.Contains(err.Error(), "GET") && what != "apply" {
				t.Errorf("%s of %s without GET: %v", what, name, err)
			}
		}
	}
}

// TestAuthorize_FinalizersNeedTheirVerb has a caller patch without FINALIZE.
func TestAuthorize_FinalizersNeedTheirVerb(t *testing.T) {
	f := guarded(t, openMemory(t), 0, servicetest.Widget())
	made, err := f.Writer.Create(access.WithCaller(t.Context(), admin()), service.CreateRequest{Identity: in("a", "w"), Spec: map[string]any{"title": "x"}})
	if err != nil {
		t.Fatal(err)
	}
	req := service.PatchRequest{Identity: in("a", "w"), ExpectedRevision: made.Resource.Stored.Revision.String(), MetadataPatch: service.MetadataPatch{AddFinalizers: []string{"example.org/clean"}}}
	f.give(allow("Widget", "GET", "PATCH"))
	if _, err := f.Writer.Patch(access.WithCaller(t.Context(), as("token:u")), req); code(err) != "FORBIDDEN" || !strings.Contains(err.Error(), "FINALIZE") {
		t.Errorf("%v", err)
	}
	f.give(allow("Widget", "GET", "FINALIZE"))
	more := req
	more.Patch = map[string]any{"weight": 70}
	if _, err := f.Writer.Patch(access.WithCaller(t.Context(), as("token:u")), more); code(err) != "FORBIDDEN" || !strings.Contains(err.Error(), "PATCH") {
		t.Errorf("a patch of the spec too: %v", err)
	}
	if _, err := f.Writer.Patch(access.WithCaller(t.Context(), as("token:u")), req); err != nil {
		t.Error(err)
	}
}

// vault is a sensitive kind, and holder one that refers to it.
func vault() descriptor.Kind {
	k := servicetest.Widget()
	k.Name, k.Singular, k.Plural, k.Sensitive = "Vault", "vault", "vaults", true
	return k
}

func holder() descriptor.Kind {
	k := servicetest.Widget()
	k.References = []descriptor.Reference{{Path: "spec.title", Kind: "Vault", Field: "vault"}}
	return k
}

// TestAuthorize_ANewReferenceToASensitiveKindNeedsGET has a caller refer to what it may not see.
func TestAuthorize_ANewReferenceToASensitiveKindNeedsGET(t *testing.T) {
	f := guarded(t, openMemory(t), 0, vault(), holder())
	ctx, u := t.Context(), as("token:u")
	f.give(allow("Widget", "*"), access.Rule{Kinds: []string{"Vault"}, Verbs: []descriptor.Verb{"GET"}, Names: []string{"mine"}})
	upsert := func(c access.Caller, name, title string) error {
		_, err := f.Writer.Upsert(access.WithCaller(ctx, c), service.UpsertRequest{Identity: in("a", name), Spec: map[string]any{"title": title}})
		return err
	}
	if err := upsert(u, "w", "mine"); err != nil {
		t.Fatal(err)
	}
	for _, title := range []string{"theirs", "absent"} {
		err := upsert(u, "w", title)
		if code(err) != "FORBIDDEN" || !strings.Contains(err.Error(), "sensitive") {
			t.Errorf("a reference to %s: %v", title, err)
		}
	}
	if err := upsert(admin(), "given", "theirs"); err != nil {
		t.Fatal(err)
	}
	made, err := f.Reader.Get(access.WithCaller(ctx, u), in("a", "given"))
	if err != nil {
		t.Fatal(err)
	}
	// What refers to it already may be changed by who may not see it.
	if _, err := f.Writer.Patch(access.WithCaller(ctx, u), service.PatchRequest{Identity: in("a", "given"), ExpectedRevision: made.Stored.Revision.String(), Patch: map[string]any{"weight": 70}}); err != nil {
		t.Errorf("a change beside the reference: %v", err)
	}
}

// TestAuthorize_HiddenBlockersAreCounted deletes a site that widgets in other namespaces rely on.
func TestAuthorize_HiddenBlockersAreCounted(t *testing.T) {
	guardedReference := widgetAtSite()
	guardedReference.References[0].Guarded = true
	f := guarded(t, openMemory(t), 0, guardedReference, site())
	ctx, u := t.Context(), as("token:u")
	if _, err := f.Writer.Upsert(access.WithCaller(ctx, admin()), service.UpsertRequest{Identity: kind.Identity{Kind: "Site", Name: "s"}, Spec: map[string]any{"title": "s"}}); err != nil {
		t.Fatal(err)
	}
	for _, at := range []kind.Identity{in("mine", "w1"), in("theirs", "w2"), in("theirs", "w3")} {
		if _, err := f.Writer.Upsert(access.WithCaller(ctx, admin()), service.UpsertRequest{Identity: at, Spec: map[string]any{"title": "s"}}); err != nil {
			t.Fatal(err)
		}
	}
	f.give(access.Rule{Kinds: []string{"Site"}, Verbs: []descriptor.Verb{"*"}}, access.Rule{Kinds: []string{"Widget"}, Verbs: []descriptor.Verb{"*"}, Namespaces: []string{"mine"}})
	out, err := f.Writer.Delete(access.WithCaller(ctx, u), service.DeleteRequest{Identity: kind.Identity{Kind: "Site", Name: "s"}})
	if err != nil || out.Deletion != service.Pending {
		t.Fatalf("%+v %v", out, err)
	}
	for relation, hidden := range map[query.Relation]int{query.BlockedBy: 2, query.Dependents: 0} {
		for _, first := range []int{0, 1, 10} {
			pages, errs := f.Reader.Dependencies(access.WithCaller(ctx, u), []query.DependencyRequest{{Relation: relation, Key: out.Resource.Stored.Key, Body: out.Resource.Body, First: &first, Ahead: true}})
			if errs[0] != nil {
				t.Fatal(errs[0])
			}
			var names []string
			for _, d := range pages[0].Dependencies {
				names = append(names, d.Key.Name)
			}
			want := []string{"w1"}
			if first == 0 {
				want = nil
			}
			total, err := pages[0].TotalCount(ctx)
			more, err2 := pages[0].PageInfo().HasNextPage(ctx)
			n, err3 := pages[0].Hidden(ctx)
			if diff := cmp.Diff(want, names); diff != "" || total != 1 || more != (first == 0) || n != hidden || err != nil || err2 != nil || err3 != nil {
				t.Errorf("relation %d, first %d: %v, %d of them, more %v, %d hidden; %v %v %v", relation, first, names, total, more, n, err, err2, err3)
			}
		}
	}
}

// TestAuthorize_UntilThePolicyIsKnownNobodyIsServed asks a gateway whose index is not filled.
func TestAuthorize_UntilThePolicyIsKnownNobodyIsServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc, err := service.New(service.Config{Kinds: append(policyKinds(t), servicetest.Widget()), Store: openMemory(t), Access: access.Config{Enabled: true, AdminGroup: adminGroup}})
		if err != nil {
			t.Fatal(err)
		}
		ctx := context.Background()
		var waiting sync.WaitGroup
		for _, c := range []access.Caller{admin(), as("token:u")} {
			for what, ask := range map[string]func() error{
				"list": func() error {
					_, err := svc.Reader.List(access.WithCaller(ctx, c), query.ListRequest{Kind: "Widget"})
					return err
				},
				"get": func() error { _, err := svc.Reader.Get(access.WithCaller(ctx, c), in("a", "w")); return err },
				"create": func() error {
					_, err := svc.Writer.Create(access.WithCaller(ctx, c), service.CreateRequest{Identity: in("a", "w"), Spec: json.RawMessage(`{"title":"x"}`)})
					return err
				},
			} {
				waiting.Go(func() {
					if err := ask(); code(err) != "UNAVAILABLE" {
						t.Errorf("%s: %v", what, err)
					}
				})
			}
		}
		waiting.Wait()
	})
}

// TestAuthorize_ADamagedRoleGivesNothing stores what does not decode under a role and under a binding.
func TestAuthorize_ADamagedRoleGivesNothing(t *testing.T) {
	store := openMemory(t)
	f := guarded(t, store, 0, servicetest.Widget())
	f.Store = store
	f.give(allow("Widget", "*"))
	if _, err := f.Reader.List(access.WithCaller(t.Context(), as("token:u")), query.ListRequest{Kind: "Widget"}); err != nil {
		t.Fatal(err)
	}
	for _, key := range []backend.Key{{Kind: access.RoleKind, Name: "role"}, {Kind: access.BindingKind, Name: "binding"}} {
		f.Put(key, backend.Put{UID: "damaged", Body: backend.EncodeBody([]byte(`{"spec":{"rules":7,"roles":7}}`))})
		if _, err := f.Reader.List(access.WithCaller(t.Context(), as("token:u")), query.ListRequest{Kind: "Widget"}); code(err) != "FORBIDDEN" {
			t.Errorf("%s: %v", key, err)
		}
		f.give(allow("Widget", "*"))
		if _, err := f.Reader.List(access.WithCaller(t.Context(), as("token:u")), query.ListRequest{Kind: "Widget"}); err != nil {
			t.Errorf("%s, once it is mended: %v", key, err)
		}
	}
}

// TestAuthorize_AnApplyWithoutUpdateDoesNotCompareWriteOnlyValues has a caller guess the values of a secret that it may see and not
// write.
func TestAuthorize_AnApplyWithoutUpdateDoesNotCompareWriteOnlyValues(t *testing.T) {
	var secret []descriptor.Kind
	for _, k := range kindstest.Kinds(t) {
		if k.Name == "Secret" {
			secret = append(secret, k)
		}
	}
	f := guarded(t, openMemory(t), 0, secret...)
	if _, err := f.Writer.Apply(access.WithCaller(t.Context(), admin()), service.ApplyRequest{Manifest: secretManifest("stringData: {pin: '1234'}")}); err != nil {
		t.Fatal(err)
	}
	f.give(allow("Secret", "GET", "CREATE"))
	for _, lines := range []string{"stringData: {pin: '1234'}", "stringData: {pin: '0000'}", "data: {pin: MTIzNA==}", "data: {pin: MDAwMA==}"} {
		for _, dry := range []bool{true, false} {
			out, err := f.Writer.Apply(access.WithCaller(t.Context(), as("token:u")), service.ApplyRequest{Manifest: secretManifest(lines), DryRun: dry})
			if code(err) != "FORBIDDEN" {
				t.Errorf("%s, dry run %v: %+v %v", lines, dry, out, err)
			}
		}
	}
	if out, err := f.Writer.Apply(access.WithCaller(t.Context(), as("token:u")), service.ApplyRequest{Manifest: secretManifest("")}); err != nil || out.Outcome != service.Unchanged {
		t.Errorf("a manifest as it is shown: %+v %v", out, err)
	}
}
