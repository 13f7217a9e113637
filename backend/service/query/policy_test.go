package query_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/query"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

// held is a store that reads nothing of one kind until it is let go.
type held struct {
	*memory.Store
	kind  string
	letGo chan struct{}
}

func (s *held) Range(ctx context.Context, r backend.Range) (backend.Page, error) {
	if r.Kind == s.kind {
		select {
		case <-s.letGo:
		case <-ctx.Done():
		}
	}
	return s.Store.Range(ctx, r)
}

// filling is a service of which one kind is not yet in memory, and another over the same store. The roles are filled
// before the bindings.
func filling(t *testing.T, of string) (slow, f *fixture, letGo func()) {
	store, err := memory.Open(memory.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	f = guarded(t, store, 0, servicetest.Widget())
	kinds := servicetest.PolicyKinds(t)
	if kinds[0].Name != access.RoleKind {
		kinds[0], kinds[1] = kinds[1], kinds[0]
	}
	h := &held{store, of, make(chan struct{})}
	svc, err := service.New(service.Config{Kinds: append(kinds, servicetest.Widget()), Store: h, Access: access.Config{Enabled: true, AdminGroup: servicetest.AdminGroup}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var runs sync.WaitGroup
	runs.Go(func() { _ = svc.Run(ctx) })
	t.Cleanup(func() {
		stop()
		runs.Wait()
	})
	return &fixture{&servicetest.Fixture{Service: svc, T: t}}, f, sync.OnceFunc(func() { close(h.letGo) })
}

// TestPolicy_APolicyIsOfOneState takes rights from a caller while the gateway has the roles in memory and not yet the
// bindings.
func TestPolicy_APolicyIsOfOneState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow, f, letGo := filling(t, access.BindingKind)
		f.Give(servicetest.Allow("Widget", "GET", "LIST"))
		synctest.Wait()
		answers := make(chan error, 1)
		go func() {
			_, err := slow.Reader.List(access.WithCaller(t.Context(), servicetest.As("token:u")), query.ListRequest{Kind: "Widget"})
			answers <- err
		}()
		synctest.Wait() // it waits for the bindings
		f.Give(servicetest.Allow("Nothing", "GET"))
		letGo()
		if err := <-answers; servicetest.CodeOf(err) != "FORBIDDEN" {
			t.Errorf("asked before: %v", err)
		}
		if _, err := slow.Reader.List(access.WithCaller(t.Context(), servicetest.As("token:u")), query.ListRequest{Kind: "Widget"}); servicetest.CodeOf(err) != "FORBIDDEN" {
			t.Errorf("asked after: %v", err)
		}
	})
}

// TestPolicy_WhatIsReadIsNoNewerThanTheRightsThatAllowIt takes rights from a caller, and then writes, while a list
// waits for the kind to be in memory.
func TestPolicy_WhatIsReadIsNoNewerThanTheRightsThatAllowIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow, f, letGo := filling(t, "Widget")
		f.Give(servicetest.Allow("Widget", "GET", "LIST"))
		synctest.Wait()
		type answer struct {
			page *query.Page
			err  error
		}
		answers := make(chan answer, 1)
		go func() {
			ctx, _ := query.WithSnapshot(t.Context())
			page, err := slow.Reader.List(access.WithCaller(ctx, servicetest.As("token:u")), query.ListRequest{Kind: "Widget"})
			answers <- answer{page, err}
		}()
		synctest.Wait() // it waits for the widgets
		f.Give(servicetest.Allow("Widget", descriptor.VerbCreate))
		f.UpsertWidget(kind.Identity{Kind: "Widget", Namespace: new("a"), Name: "later"}, "x")
		letGo()
		if a := <-answers; servicetest.CodeOf(a.err) != "FORBIDDEN" {
			t.Errorf("%v %v", a.page, a.err)
		}
	})
}
