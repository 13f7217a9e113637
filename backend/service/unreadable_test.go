package service_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/query"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

// TestUnreadables_AreCountedAndListed: what a page or a summary leaves out is counted with it, in its namespace,
// whatever its filter, as far as the caller may see it; in memory and from the store.
func TestUnreadables_AreCountedAndListed(t *testing.T) {
	for how, indexMemory := range map[string]int64{"store": -1, "memory": 0} {
		t.Run(how, func(t *testing.T) {
			store := servicetest.OpenMemory(t)
			f := guarded(t, store, indexMemory, servicetest.Widget())
			f.Store = store
			for _, namespace := range []string{"a", "b"} {
				for i := range 4 {
					id := kind.Identity{Kind: "Widget", Namespace: &namespace, Name: fmt.Sprint("w", i)}
					if _, err := f.Writer.Create(access.WithCaller(t.Context(), servicetest.Admin()), service.CreateRequest{Identity: id, Spec: servicetest.Raw(`{"title":"A"}`)}); err != nil {
						t.Fatal(err)
					}
				}
			}
			for _, broken := range []struct{ namespace, name, body string }{
				{"a", "w1", `{"version":"v1","metadata":{"generation":1},"spec":{}}`},
				{"b", "w2", `{"version":"v1","metadata":{"generation":1},"spec":{"title":7}}`},
				{"b", "w3", `{"version":"v1","spec":`},
			} {
				key := backend.Key{Kind: "Widget", Namespace: broken.namespace, Name: broken.name}
				f.Put(key, backend.Put{UID: "u", Caller: true, Body: backend.EncodeBody([]byte(broken.body))})
			}
			f.StorePolicy(access.RoleKind, "role", access.Role{Rules: []access.Rule{{Kinds: []string{"Widget"}, Verbs: []descriptor.Verb{descriptor.VerbGet, descriptor.VerbList}}}})
			f.StorePolicy(access.BindingKind, "all", access.Binding{Roles: []string{"role"}, Users: []string{"token:all"}, Namespaces: []string{"*"}})
			f.StorePolicy(access.BindingKind, "one", access.Binding{Roles: []string{"role"}, Users: []string{"token:one"}, Namespaces: []string{"b"}})
			filter := map[string]any{"spec": map[string]any{"title": map[string]any{"eq": "none"}}}
			a := "a"
			for _, c := range []struct {
				caller    access.Caller
				namespace *string
				want      string
			}{
				{servicetest.Admin(), nil, "a/w1 b/w2 b/w3"},
				{servicetest.Admin(), &a, "a/w1"},
				{servicetest.As("token:all"), nil, "a/w1 b/w2 b/w3"},
				{servicetest.As("token:one"), nil, "b/w2 b/w3"},
				{servicetest.As("token:one"), &a, ""},
			} {
				ctx := access.WithCaller(t.Context(), c.caller)
				found, err := f.Reader.Unreadables(ctx, "widgets", c.namespace)
				if err != nil {
					t.Fatal(err)
				}
				names := make([]string, len(found))
				for i, u := range found {
					names[i] = u.Key.Namespace + "/" + u.Key.Name
					if u.Reason == "" || strings.Contains(u.Reason, "unreadable") || strings.Contains(u.Reason, "7") {
						t.Errorf("%s: the reason is %q", u.Key, u.Reason)
					}
				}
				if got := strings.Join(names, " "); got != c.want {
					t.Errorf("%s lists %q in %v, want %q", c.caller.Identity, got, c.namespace, c.want)
				}
				p, err := f.Reader.List(ctx, query.ListRequest{Kind: "Widget", Namespace: c.namespace, Filter: filter})
				if err != nil {
					t.Fatal(err)
				}
				if n, err := p.Unreadable(ctx); err != nil || n != len(strings.Fields(c.want)) {
					t.Errorf("%s counts %d in %v, %v; want %q", c.caller.Identity, n, c.namespace, err, c.want)
				}
				s, err := f.Reader.Summary(ctx, query.SummaryRequest{Kind: "Widget", Namespace: c.namespace, By: []string{"namespace"}})
				if err != nil {
					t.Fatal(err)
				}
				if n, err := s.Unreadable(ctx); err != nil || n != len(strings.Fields(c.want)) {
					t.Errorf("%s counts %d in a summary of %v, %v; want %q", c.caller.Identity, n, c.namespace, err, c.want)
				}
			}
		})
	}
}
