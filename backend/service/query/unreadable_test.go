package query_test

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/query"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

func TestUnreadable_ACountLeavesOutWhatPagesLeaveOut(t *testing.T) {
	f := setup(t)
	for i := range 5 {
		f.CreateWidget(fmt.Sprint("w", i), `{"title":"A"}`)
	}
	for _, name := range []string{"w1", "w3"} {
		r := f.Stored(name)
		put := backend.Put{UID: r.UID, Caller: true, Body: backend.EncodeBody([]byte(`{"version":"v1","metadata":{"generation":1},"spec":{}}`))}
		f.Put(r.Key, put)
	}
	for name, req := range map[string]query.ListRequest{
		"all":           {Kind: "Widget"},
		"a namespace":   {Kind: "Widget", Namespace: servicetest.Pointer("default")},
		"an index":      {Kind: "Widget", Filter: map[string]any{"spec": map[string]any{"title": map[string]any{"eq": "A"}}}},
		"a scan":        {Kind: "Widget", Filter: map[string]any{"spec": map[string]any{"title": map[string]any{"contains": "A"}}}},
		"another order": {Kind: "Widget", OrderBy: []query.Order{{Field: "spec.title"}}},
	} {
		p := f.MustList(req)
		n, err := p.TotalCount(t.Context())
		if err != nil || n != 3 || len(p.Edges) != 3 {
			t.Errorf("%s: count %d, edges %d, error %v; want 3", name, n, len(p.Edges), err)
		}
	}
	// What becomes readable is counted again.
	f.Rewrite("w1", true, func(tree map[string]any) { tree["spec"].(map[string]any)["title"] = "A" })
	if n, err := f.MustList(query.ListRequest{Kind: "Widget"}).TotalCount(t.Context()); err != nil || n != 4 {
		t.Errorf("count %d, error %v; want 4", n, err)
	}
}

// rowless is a store in which rows and references of all resources are damaged:
// they can be read bare alone.
type rowless struct{ *memory.Store }

func (s rowless) Get(_ context.Context, keys ...backend.Key) ([]*backend.Resource, error) {
	if len(keys) == 1 {
		return nil, fmt.Errorf("decode: %w", backend.ErrUnreadable)
	}
	return make([]*backend.Resource, len(keys)), nil
}

func (s rowless) GetBare(ctx context.Context, keys ...backend.Key) ([]*backend.Resource, error) {
	return s.Store.Get(ctx, keys...)
}

func TestUnreadable_ATotalCountLeavesOutWhatThePageLeavesOut(t *testing.T) {
	f := setup(t)
	for _, name := range []string{"a", "b", "c", "d"} {
		f.CreateWidget(name, `{"title":"A"}`)
	}
	f.Damage("a")
	f.Damage("b")
	svc, err := service.New(service.Config{Kinds: []descriptor.Kind{servicetest.Widget(), servicetest.Cluster()}, Store: rowless{f.Store}})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		p, err := svc.Reader.List(t.Context(), query.ListRequest{Kind: "Widget"})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if n, err := p.TotalCount(t.Context()); err != nil || n != 2 || len(p.Edges) != 2 {
				t.Errorf("%d resources on the page, counted %d, %v", len(p.Edges), n, err)
			}
		}
	}
}

func TestUnreadable_AMarkOfAnUnreadableResourceKeepsNothingOfTheRequest(t *testing.T) {
	for driver, open := range servicetest.Embedded() {
		t.Run(driver, func(t *testing.T) {
			store := open(t)
			svc := servicetest.Gateways(t, store, 1)[0]
			var freed atomic.Int32
			const count = 8
			for i := range count {
				request := strings.Repeat("x", 1<<16) + fmt.Sprintf("bad%d", i)
				runtime.AddCleanup(unsafe.StringData(request), func(n *atomic.Int32) { n.Add(1) }, &freed)
				name := request[1<<16:]
				key := backend.Key{Kind: "Widget", Namespace: "default", Name: strings.Clone(name)}
				put := backend.Put{UID: "u", Body: backend.EncodeBody([]byte(`{`))}
				if _, err := store.Apply(t.Context(), backend.Batch{RequestID: "spoil", Deadline: time.Now().Add(time.Minute), Actions: []backend.Action{{Key: key, Op: backend.OpPut, Put: put}}}); err != nil {
					t.Fatal(err)
				}
				_, err := svc.Reader.Get(t.Context(), servicetest.Named(name))
				servicetest.WantCode(t, err, failure.CodeUnreadable)
			}
			for range 100 {
				if runtime.GC(); freed.Load() == count {
					break
				}
			}
			if n := freed.Load(); n < count {
				t.Errorf("%d of %d requests are in memory", count-n, count)
			}
			runtime.KeepAlive(svc)
		})
	}
}

// TestUnreadables_OfAServiceAreListedWithinTheRightsOfTheCaller: of the resources that cannot be mirrored, a caller is
// shown those that it may list, once each and in order, and only up to the maximum.
func TestUnreadables_OfAServiceAreListedWithinTheRightsOfTheCaller(t *testing.T) {
	store := servicetest.OpenMemory(t)
	f := servicetest.Guarded(t, store, 0, servicetest.Widget())
	f.Store = store
	key := func(namespace, name string) backend.Key {
		return backend.Key{Kind: "Widget", Namespace: namespace, Name: name}
	}
	f.Put(key("b", "w1"), backend.Put{UID: "u", Caller: true, Body: backend.EncodeBody([]byte(`{`))})
	read := access.Rule{Kinds: []string{"Widget"}, Verbs: []descriptor.Verb{descriptor.VerbGet, descriptor.VerbList}}
	f.StorePolicy(access.RoleKind, "role", access.Role{Rules: []access.Rule{read}})
	f.StorePolicy(access.BindingKind, "one", access.Binding{
		Roles: []string{"role"}, Users: []string{"token:one"}, Namespaces: []string{"b"},
	})
	kinds, err := kind.Compile(append(servicetest.PolicyKinds(t), servicetest.Widget()))
	if err != nil {
		t.Fatal(err)
	}
	unmirrored := map[backend.Key]string{key("b", "w0"): "too large", key("b", "w1"): "both", key("a", "w2"): "too large"}
	r := query.New(query.Config{
		Store:      store,
		Kinds:      kinds,
		Unreadable: kind.NewUnreadable(store, zap.NewNop(), kind.NewUnreadableCounter(func(string) {})),
		Access:     access.Config{Enabled: true, AdminGroup: servicetest.AdminGroup},
		Policy:     f.Reader.PolicySource(),
		Unmirrored: func(*kind.Kind) map[backend.Key]string { return maps.Clone(unmirrored) },
	})
	listed := func(caller access.Caller, namespace *string) (out []query.UnreadableResource) {
		out, err := r.Unreadables(access.WithCaller(t.Context(), caller), "Widget", namespace)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	damaged := query.UnreadableResource{Key: key("b", "w1"), Reason: "the record does not decode"}
	if got := listed(servicetest.Admin(), nil); len(got) != 3 || got[0].Key != key("a", "w2") || got[2].Key != damaged.Key {
		t.Errorf("an administrator is shown %v", got)
	}
	got := listed(servicetest.As("token:one"), nil)
	want := []query.UnreadableResource{{Key: key("b", "w0"), Reason: "too large"}, damaged}
	if len(got) != 2 || got[0] != want[0] || got[1].Key != damaged.Key || got[1].Reason == "both" {
		t.Errorf("the caller is shown %v, want %v", got, want)
	}
	if got := listed(servicetest.As("token:one"), servicetest.Pointer("a")); len(got) != 0 {
		t.Errorf("of another namespace the caller is shown %v", got)
	}
	for i := range 2 * query.MaxUnreadables {
		unmirrored[key("c", fmt.Sprintf("w%04d", i))] = "too large"
	}
	if got := listed(servicetest.Admin(), nil); len(got) != query.MaxUnreadables || got[3].Key != key("c", "w0000") {
		t.Errorf("%d are listed, after the others %v", len(got), got[3])
	}
}
