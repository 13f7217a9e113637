package query_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/query"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

// headless is a store that does not tell its head while it is down.
type headless struct {
	backend.Store
	down  atomic.Bool
	calls atomic.Int32
}

func (h *headless) Head(ctx context.Context) (backend.Position, error) {
	if h.down.Load() {
		h.calls.Add(1)
		return backend.Position{}, backend.ErrUnavailable
	}
	return backend.HeadOf(ctx, h.Store)
}

// TestPolicy_AStoreThatDoesNotAnswerIsAskedOnceInAnOperation keeps an operation from waiting for each of its lists.
func TestPolicy_AStoreThatDoesNotAnswerIsAskedOnceInAnOperation(t *testing.T) {
	for name, controlled := range map[string]bool{"without access control": false, "with access control": true} {
		t.Run(name, func(t *testing.T) {
			store := &headless{Store: servicetest.OpenMemory(t)}
			f := &fixture{&servicetest.Fixture{T: t}}
			if controlled {
				f = guarded(t, store, 0, servicetest.Widget())
			} else {
				svc, err := service.New(service.Config{Kinds: append(servicetest.PolicyKinds(t), servicetest.Widget()), Store: store})
				if err != nil {
					t.Fatal(err)
				}
				f.Service = svc
				f.ServeIndexed()
			}
			store.down.Store(true)
			ctx, _ := query.WithSnapshot(t.Context())
			for range 2 {
				_, err := f.Reader.List(access.WithCaller(ctx, servicetest.Admin()), query.ListRequest{Kind: "Widget", First: servicetest.Pointer(1)})
				servicetest.WantCode(t, err, failure.CodeUnavailable)
			}
			if calls := store.calls.Load(); calls != 1 {
				t.Errorf("the store was asked %d times, want 1", calls)
			}
		})
	}
}
