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
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/query"
	"github.com/sluicegw/sluice/backend/service/servicetest"
	"github.com/sluicegw/sluice/graph/kinds/kindstest"
)

// TestAuthorize_AWriteShowsNothingThatTheCallerMayNotSee has callers with CREATE alone.
func TestAuthorize_AWriteShowsNothingThatTheCallerMayNotSee(t *testing.T) {
	f := guarded(t, servicetest.OpenMemory(t), 0, servicetest.Widget())
	ctx, u := t.Context(), servicetest.As("token:u")
	spec := map[string]any{"title": "x"}
	if _, err := f.Writer.Create(access.WithCaller(ctx, servicetest.Admin()), service.CreateRequest{Identity: servicetest.WidgetIn("a", "hidden"), Spec: spec}); err != nil {
		t.Fatal(err)
	}
	f.Give(servicetest.Allow("Widget", "CREATE"))
	for _, dry := range []bool{true, false} {
		out, err := f.Writer.Create(access.WithCaller(ctx, u), service.CreateRequest{Identity: servicetest.WidgetIn("a", "new"), Spec: spec, DryRun: dry})
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
			if out, err := f.Writer.Apply(access.WithCaller(ctx, u), req); servicetest.CodeOf(err) != "ALREADY_EXISTS" {
				t.Errorf("an apply of what is hidden, %s: %+v %v", title, out, err)
			}
		}
	}
	if out, err := f.Writer.Apply(access.WithCaller(ctx, u), manifest("applied", "x")); err != nil || out.Resource != nil {
		t.Errorf("an apply that creates: %+v %v", out, err)
	}
	f.Give(servicetest.Allow("Widget", "UPDATE", "PATCH", "UPSERT", "STATUS", "DELETE", "FINALIZE"))
	for _, name := range []string{"hidden", "absent"} { // the answer depends on the policy alone
		_, update := f.Writer.Update(access.WithCaller(ctx, u), service.UpdateRequest{Identity: servicetest.WidgetIn("a", name), ExpectedRevision: "1-1", Spec: spec})
		_, patch := f.Writer.Patch(access.WithCaller(ctx, u), service.PatchRequest{Identity: servicetest.WidgetIn("a", name), ExpectedRevision: "1-1", Patch: spec})
		_, upsert := f.Writer.Upsert(access.WithCaller(ctx, u), service.UpsertRequest{Identity: servicetest.WidgetIn("a", name), Spec: spec})
		_, status := f.Writer.UpdateStatus(access.WithCaller(ctx, u), service.StatusRequest{Identity: servicetest.WidgetIn("a", name), ExpectedRevision: "1-1", Status: map[string]any{}})
		_, remove := f.Writer.Delete(access.WithCaller(ctx, u), service.DeleteRequest{Identity: servicetest.WidgetIn("a", name)})
		_, apply := f.Writer.Apply(access.WithCaller(ctx, u), manifest(name, "x"))
		for what, err := range map[string]error{"update": update, "patch": patch, "upsert": upsert, "status": status, "delete": remove, "apply": apply} {
			if servicetest.CodeOf(err) != "FORBIDDEN" || err == nil || !strings.Contains(err.Error(), "GET") && what != "apply" {
				t.Errorf("%s of %s without GET: %v", what, name, err)
			}
		}
	}
}

// TestAuthorize_FinalizersNeedTheirVerb has a caller patch without FINALIZE.
func TestAuthorize_FinalizersNeedTheirVerb(t *testing.T) {
	f := guarded(t, servicetest.OpenMemory(t), 0, servicetest.Widget())
	made, err := f.Writer.Create(access.WithCaller(t.Context(), servicetest.Admin()), service.CreateRequest{Identity: servicetest.WidgetIn("a", "w"), Spec: map[string]any{"title": "x"}})
	if err != nil {
		t.Fatal(err)
	}
	req := service.PatchRequest{Identity: servicetest.WidgetIn("a", "w"), ExpectedRevision: made.Resource.Stored.Revision.String(), MetadataPatch: service.MetadataPatch{AddFinalizers: []string{"example.org/clean"}}}
	f.Give(servicetest.Allow("Widget", "GET", "PATCH"))
	if _, err := f.Writer.Patch(access.WithCaller(t.Context(), servicetest.As("token:u")), req); servicetest.CodeOf(err) != "FORBIDDEN" || !strings.Contains(err.Error(), "FINALIZE") {
		t.Errorf("%v", err)
	}
	f.Give(servicetest.Allow("Widget", "GET", "FINALIZE"))
	more := req
	more.Patch = map[string]any{"weight": 70}
	if _, err := f.Writer.Patch(access.WithCaller(t.Context(), servicetest.As("token:u")), more); servicetest.CodeOf(err) != "FORBIDDEN" || !strings.Contains(err.Error(), "PATCH") {
		t.Errorf("a patch of the spec too: %v", err)
	}
	if _, err := f.Writer.Patch(access.WithCaller(t.Context(), servicetest.As("token:u")), req); err != nil {
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
	f := guarded(t, servicetest.OpenMemory(t), 0, vault(), holder())
	ctx, u := t.Context(), servicetest.As("token:u")
	f.Give(servicetest.Allow("Widget", "*"), access.Rule{Kinds: []string{"Vault"}, Verbs: []descriptor.Verb{"GET"}, Names: []string{"mine"}})
	upsert := func(c access.Caller, name, title string) error {
		_, err := f.Writer.Upsert(access.WithCaller(ctx, c), service.UpsertRequest{Identity: servicetest.WidgetIn("a", name), Spec: map[string]any{"title": title}})
		return err
	}
	if err := upsert(u, "w", "mine"); err != nil {
		t.Fatal(err)
	}
	for _, title := range []string{"theirs", "absent"} {
		err := upsert(u, "w", title)
		if servicetest.CodeOf(err) != "FORBIDDEN" || !strings.Contains(err.Error(), "sensitive") {
			t.Errorf("a reference to %s: %v", title, err)
		}
	}
	if err := upsert(servicetest.Admin(), "given", "theirs"); err != nil {
		t.Fatal(err)
	}
	made, err := f.Reader.Get(access.WithCaller(ctx, u), servicetest.WidgetIn("a", "given"))
	if err != nil {
		t.Fatal(err)
	}
	// What refers to it already may be changed by who may not see it.
	if _, err := f.Writer.Patch(access.WithCaller(ctx, u), service.PatchRequest{Identity: servicetest.WidgetIn("a", "given"), ExpectedRevision: made.Stored.Revision.String(), Patch: map[string]any{"weight": 70}}); err != nil {
		t.Errorf("a change beside the reference: %v", err)
	}
}

// TestAuthorize_HiddenBlockersAreCounted deletes a site that widgets in other namespaces rely on.
func TestAuthorize_HiddenBlockersAreCounted(t *testing.T) {
	guardedReference := servicetest.WidgetAtSite()
	guardedReference.References[0].Guarded = true
	f := guarded(t, servicetest.OpenMemory(t), 0, guardedReference, servicetest.Site())
	ctx, u := t.Context(), servicetest.As("token:u")
	if _, err := f.Writer.Upsert(access.WithCaller(ctx, servicetest.Admin()), service.UpsertRequest{Identity: kind.Identity{Kind: "Site", Name: "s"}, Spec: map[string]any{"title": "s"}}); err != nil {
		t.Fatal(err)
	}
	for _, at := range []kind.Identity{servicetest.WidgetIn("mine", "w1"), servicetest.WidgetIn("theirs", "w2"), servicetest.WidgetIn("theirs", "w3")} {
		if _, err := f.Writer.Upsert(access.WithCaller(ctx, servicetest.Admin()), service.UpsertRequest{Identity: at, Spec: map[string]any{"title": "s"}}); err != nil {
			t.Fatal(err)
		}
	}
	f.Give(access.Rule{Kinds: []string{"Site"}, Verbs: []descriptor.Verb{"*"}}, access.Rule{Kinds: []string{"Widget"}, Verbs: []descriptor.Verb{"*"}, Namespaces: []string{"mine"}})
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
		svc, err := service.New(service.Config{Kinds: append(servicetest.PolicyKinds(t), servicetest.Widget()), Store: servicetest.OpenMemory(t), Access: access.Config{Enabled: true, AdminGroup: servicetest.AdminGroup}})
		if err != nil {
			t.Fatal(err)
		}
		ctx := context.Background()
		var waiting sync.WaitGroup
		for _, c := range []access.Caller{servicetest.Admin(), servicetest.As("token:u")} {
			for what, ask := range map[string]func() error{
				"list": func() error {
					_, err := svc.Reader.List(access.WithCaller(ctx, c), query.ListRequest{Kind: "Widget"})
					return err
				},
				"get": func() error {
					_, err := svc.Reader.Get(access.WithCaller(ctx, c), servicetest.WidgetIn("a", "w"))
					return err
				},
				"create": func() error {
					_, err := svc.Writer.Create(access.WithCaller(ctx, c), service.CreateRequest{Identity: servicetest.WidgetIn("a", "w"), Spec: json.RawMessage(`{"title":"x"}`)})
					return err
				},
			} {
				waiting.Go(func() {
					if err := ask(); servicetest.CodeOf(err) != "UNAVAILABLE" {
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
	store := servicetest.OpenMemory(t)
	f := guarded(t, store, 0, servicetest.Widget())
	f.Store = store
	f.Give(servicetest.Allow("Widget", "*"))
	if _, err := f.Reader.List(access.WithCaller(t.Context(), servicetest.As("token:u")), query.ListRequest{Kind: "Widget"}); err != nil {
		t.Fatal(err)
	}
	for _, key := range []backend.Key{{Kind: access.RoleKind, Name: "role"}, {Kind: access.BindingKind, Name: "binding"}} {
		f.Put(key, backend.Put{UID: "damaged", Body: backend.EncodeBody([]byte(`{"spec":{"rules":7,"roles":7}}`))})
		if _, err := f.Reader.List(access.WithCaller(t.Context(), servicetest.As("token:u")), query.ListRequest{Kind: "Widget"}); servicetest.CodeOf(err) != "FORBIDDEN" {
			t.Errorf("%s: %v", key, err)
		}
		f.Give(servicetest.Allow("Widget", "*"))
		if _, err := f.Reader.List(access.WithCaller(t.Context(), servicetest.As("token:u")), query.ListRequest{Kind: "Widget"}); err != nil {
			t.Errorf("%s, once it is mended: %v", key, err)
		}
	}
}

// TestAuthorize_AnApplyWithoutUpdateDoesNotCompareWriteOnlyValues has a caller guess the values of a secret that it may
// see and not write.
func TestAuthorize_AnApplyWithoutUpdateDoesNotCompareWriteOnlyValues(t *testing.T) {
	var secret []descriptor.Kind
	for _, k := range kindstest.Kinds(t) {
		if k.Name == "Secret" {
			secret = append(secret, k)
		}
	}
	f := guarded(t, servicetest.OpenMemory(t), 0, secret...)
	if _, err := f.Writer.Apply(access.WithCaller(t.Context(), servicetest.Admin()), service.ApplyRequest{Manifest: secretManifest("stringData: {pin: '1234'}")}); err != nil {
		t.Fatal(err)
	}
	f.Give(servicetest.Allow("Secret", "GET", "CREATE"))
	for _, lines := range []string{"stringData: {pin: '1234'}", "stringData: {pin: '0000'}", "data: {pin: MTIzNA==}", "data: {pin: MDAwMA==}"} {
		for _, dry := range []bool{true, false} {
			out, err := f.Writer.Apply(access.WithCaller(t.Context(), servicetest.As("token:u")), service.ApplyRequest{Manifest: secretManifest(lines), DryRun: dry})
			if servicetest.CodeOf(err) != "FORBIDDEN" {
				t.Errorf("%s, dry run %v: %+v %v", lines, dry, out, err)
			}
		}
	}
	if out, err := f.Writer.Apply(access.WithCaller(t.Context(), servicetest.As("token:u")), service.ApplyRequest{Manifest: secretManifest("")}); err != nil || out.Outcome != service.Unchanged {
		t.Errorf("a manifest as it is shown: %+v %v", out, err)
	}
}
