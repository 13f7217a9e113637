package service_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

// slowBindings is a store that fails to read AccessBindings until the roles were read, so that an index has the roles
// before them. Then it closes requested, and reads them once released is closed.
type slowBindings struct {
	backend.Store
	requested, released chan struct{}
	once                sync.Once   // for requested
	hasRoles            atomic.Bool // reports whether the roles were read
}

func (s *slowBindings) Range(ctx context.Context, r backend.Range) (backend.Page, error) {
	if r.Kind == access.BindingKind {
		if !s.hasRoles.Load() {
			return backend.Page{}, backend.ErrUnavailable
		}
		s.once.Do(func() { close(s.requested) })
		<-s.released
	}
	if r.Kind == access.RoleKind {
		s.hasRoles.Store(true)
	}
	return s.Store.Range(ctx, r)
}

// TestAuthorize_ARoleThatIsNarrowedWhileTheBindingsAreReadIsNotUsed has a gateway whose index has the roles already,
// and another one that changes a role meanwhile.
func TestAuthorize_ARoleThatIsNarrowedWhileTheBindingsAreReadIsNotUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := servicetest.OpenMemory(t)
		other := guarded(t, store, 0, servicetest.Widget())
		other.Give(servicetest.Allow("Widget", "*"))
		if _, err := other.Writer.Create(access.WithCaller(t.Context(), servicetest.Admin()), service.CreateRequest{Identity: servicetest.WidgetIn("a", "w"), Spec: map[string]any{"title": "x"}}); err != nil {
			t.Fatal(err)
		}
		slow := &slowBindings{Store: store, requested: make(chan struct{}), released: make(chan struct{})}
		svc, err := service.New(service.Config{
			Kinds: append(servicetest.PolicyKinds(t), servicetest.Widget()), Store: slow, IndexMemory: -1, Access: access.Config{Enabled: true, AdminGroup: servicetest.AdminGroup},
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended, first := make(chan error, 1), make(chan error, 1)
		go func() { ended <- svc.Run(ctx) }()
		<-slow.requested
		go func() {
			_, err := svc.Reader.Get(access.WithCaller(ctx, servicetest.As("token:u")), servicetest.WidgetIn("a", "w"))
			first <- err
		}()
		synctest.Wait()
		other.StorePolicy(access.RoleKind, "role", access.Role{Rules: []access.Rule{servicetest.Allow("Widget", "DELETE")}})
		synctest.Wait()
		close(slow.released)
		<-first
		if _, err := svc.Reader.Get(access.WithCaller(ctx, servicetest.As("token:u")), servicetest.WidgetIn("a", "w")); servicetest.CodeOf(err) != "FORBIDDEN" {
			t.Errorf("after the role was narrowed: %v", err)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
