package query_test

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
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/failure"
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
