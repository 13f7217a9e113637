package service_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/index"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/change"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/query"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

func TestUnreadable_ADamagedResourceIsWrittenAnewByAnUnconditionalWrite(t *testing.T) {
	for name, write := range map[string]func(f *fixture) (*service.Written, error){
		"upsert": func(f *fixture) (*service.Written, error) {
			return f.Writer.Upsert(t.Context(), service.UpsertRequest{Identity: servicetest.Named("a"), Spec: servicetest.Raw(`{"title":"B"}`)})
		},
		"apply": func(f *fixture) (*service.Written, error) {
			return f.apply(strings.Replace(widgetManifest, "title: A", "title: B", 1))
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := setup(t)
			uid := f.CreateWidget("a", `{"title":"A"}`).Resource.Stored.UID
			f.Damage("a")
			_, err := f.Reader.Get(t.Context(), servicetest.Named("a"))
			servicetest.WantCode(t, err, failure.CodeUnreadable)
			out, err := write(f)
			if err != nil || out.Outcome != service.Updated || out.Resource.Body == nil {
				t.Fatalf("%+v %v", out, err)
			}
			got, err := f.Reader.Get(t.Context(), servicetest.Named("a"))
			if err != nil || got.Stored.UID != uid {
				t.Fatalf("%+v %v", got, err)
			}
			if body, err := decodeBody(got.Stored); err != nil || body.Metadata.Generation != 1 || !strings.Contains(string(body.Spec), `"title":"B"`) {
				t.Errorf("%+v %v", body, err)
			}
		})
	}
	t.Run("a conditional one is refused", func(t *testing.T) {
		f := setup(t)
		f.CreateWidget("a", `{"title":"A"}`)
		r := f.Damage("a")
		_, err := f.UpdateWidget("a", r.Revision.String(), `{"title":"B"}`)
		servicetest.WantCode(t, err, failure.CodeUnreadable)
	})
}

func TestUnreadable_AFilteredListenerHearsThatADamagedResourceIsGone(t *testing.T) {
	f := setup(t)
	f.CreateWidget("a", `{"title":"A"}`)
	f.CreateWidget("b", `{"title":"B"}`)
	f.Damage("a")
	c := f.StartChanges(change.Request{Kinds: []string{"Widget"}, Filter: map[string]any{"spec": map[string]any{"title": map[string]any{"eq": "A"}}}})
	if got := servicetest.Take(t, c, 1)[0].Type; got != change.InSync {
		t.Fatalf("first is %s", got)
	}
	for _, name := range []string{"b", "a"} {
		if _, err := f.Writer.Delete(t.Context(), service.DeleteRequest{Identity: servicetest.Named(name)}); err != nil {
			t.Fatal(err)
		}
	}
	e := servicetest.Take(t, c, 1)[0]
	if e.Type != change.Deleted || e.Stored.Name != "a" {
		t.Fatalf("%s %v, want DELETED of a", e.Type, e.Stored)
	}
	if b, err := e.Body(); b != nil || err != nil {
		t.Errorf("its last state is %v %v, want nothing", b, err)
	}
}

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

func TestUnreadable_AStatusOfAnyTextIsStored(t *testing.T) {
	f := setup(t)
	for name, conditionType := range map[string]string{"NULs": strings.Repeat("\x00", 1024), "long": strings.Repeat("x", 5000), "many bytes": strings.Repeat("\U0001F600", 300)} {
		r := f.CreateWidget(strings.ReplaceAll(strings.ToLower(name), " ", "-"), `{"title":"A"}`).Resource.Stored
		status := map[string]any{"id": conditionType, "conditions": []any{map[string]any{"type": conditionType, "status": conditionType}}}
		if _, err := f.Writer.UpdateStatus(t.Context(), service.StatusRequest{Identity: kind.Identity{Kind: "Widget", Name: r.Name}, ExpectedRevision: r.Revision.String(), Status: status}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestUnreadable_MoreIndexedValuesThanAResourceMayHaveAreRefused(t *testing.T) {
	k := servicetest.WithConditions(servicetest.Widget())
	f := setup(t)
	var err error
	if f.Service, err = service.New(service.Config{Kinds: []descriptor.Kind{k}, Store: f.Store}); err != nil {
		t.Fatal(err)
	}
	r := f.CreateWidget("a", `{"title":"A","tags":["x"]}`).Resource.Stored
	conditions := func(n int) map[string]any {
		var list []any
		for i := range n {
			list = append(list, map[string]any{"type": fmt.Sprint("t", i), "status": "True"})
		}
		return map[string]any{"conditions": list}
	}
	widgets, err := kind.Compile([]descriptor.Kind{k})
	if err != nil {
		t.Fatal(err)
	}
	rows := func(r *backend.Resource) int {
		b, err := widgets.Body("Widget").Read(r)
		if err != nil {
			t.Fatal(err)
		}
		return len(widgets.All()[0].Rows.Of(b))
	}
	own := rows(r)
	out, err := f.Writer.UpdateStatus(t.Context(), service.StatusRequest{Identity: servicetest.Named("a"), ExpectedRevision: r.Revision.String(), Status: conditions(index.MaxRows - own)})
	if err != nil || rows(out.Resource.Stored) != index.MaxRows {
		t.Fatalf("as many as fit: %v", err)
	}
	_, err = f.Writer.UpdateStatus(t.Context(), service.StatusRequest{Identity: servicetest.Named("a"), ExpectedRevision: out.Resource.Stored.Revision.String(), Status: conditions(index.MaxRows - own + 1)})
	if e := servicetest.WantCode(t, err, failure.CodeLimitExceeded); e.Path != "status.conditions" || e.Limit != 1024 || e.Name != "a" {
		t.Errorf("%+v", e)
	}
}

func TestUnreadable_ARunWithManyRowsOfAResourceIsReadOnce(t *testing.T) {
	store := &servicetest.ReadCounter{Store: setup(t).Store}
	s, err := service.New(service.Config{Kinds: []descriptor.Kind{servicetest.WithConditions(servicetest.Widget())}, Store: store})
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{&servicetest.Fixture{Service: s, T: t, Store: store.Store}}
	const resources, rows = 4, 1000
	for i := range resources {
		var list []any
		for j := range rows {
			list = append(list, map[string]any{"type": "Ready", "status": fmt.Sprintf("s%04d", j)})
		}
		name := fmt.Sprint("w", i)
		f.CreateWidget(name, `{"title":"A"}`)
		f.Rewrite(name, false, func(body map[string]any) { body["status"] = map[string]any{"conditions": list} })
	}
	store.Resources = 0
	p := f.MustList(query.ListRequest{Kind: "Widget", Filter: map[string]any{"conditions": []any{map[string]any{"type": "Ready"}}}})
	if len(p.Edges) != resources {
		t.Errorf("%d found, want %d", len(p.Edges), resources)
	}
	if most := resources*rows + 600; store.Resources > most {
		t.Errorf("%d rows were read for %d", store.Resources, resources*rows)
	}
}

func TestUnreadable_TimesOutsideTheOrdinaryFilterLikeOthers(t *testing.T) {
	f := setup(t)
	f.CreateWidget("a", `{"title":"A"}`)
	for _, c := range []struct {
		op, at string
		want   int
	}{
		{"lt", "9999-12-31T23:59:59Z", 1}, {"lt", "2263-01-01T00:00:00Z", 1}, {"gt", "2300-01-01T00:00:00Z", 0}, {"gte", "9999-12-31T23:59:59Z", 0},
		{"gt", "0001-01-01T00:00:00Z", 1}, {"gte", "1500-01-01T00:00:00Z", 1}, {"gt", "1600-01-01T00:00:00Z", 1}, {"lt", "1600-01-01T00:00:00Z", 0}, {"lte", "0000-01-01T00:00:00Z", 0},
	} {
		for _, field := range []string{"createdAt", "updatedAt"} {
			if p := f.MustList(query.ListRequest{Kind: "Widget", Filter: map[string]any{field: map[string]any{c.op: c.at}}}); len(p.Edges) != c.want {
				t.Errorf("%s %s %s: %d found, want %d", field, c.op, c.at, len(p.Edges), c.want)
			}
		}
	}
}

func TestUnreadable_AMarkOfAnUnreadableResourceKeepsNothingOfTheRequest(t *testing.T) {
	for driver, store := range stores(t) {
		t.Run(driver, func(t *testing.T) {
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
