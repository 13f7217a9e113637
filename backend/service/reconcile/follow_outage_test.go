package reconcile_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/reconcile"
	"github.com/sluicegw/sluice/backend/service/sender"
)

// away is a store of many shards that answers once and then no more. Its record of controllers is damaged.
type away struct {
	backend.Store
	called atomic.Bool
}

func (s *away) Position(context.Context) (backend.Position, error) {
	if s.called.Swap(true) {
		return backend.Position{}, backend.ErrUnavailable
	}
	return backend.NewPosition(make([]backend.Revision, 256)...), nil
}

func (s *away) Get(_ context.Context, keys ...backend.Key) ([]*backend.Resource, error) {
	if keys[0].Kind == "_controllers" {
		return nil, backend.ErrUnreadable
	}
	return nil, backend.ErrUnavailable
}

func TestFollow_AStoreOfManyShardsThatIsAwayIsLoggedOnceInAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.DebugLevel)
		r := reconcile.New(reconcile.Config{
			Sender: &sender.Sender{Store: &away{}, Clock: time.Now, WriteTimeout: time.Second},
			Kinds:  kind.Catalogue{}, Logger: zap.New(core), NewID: func() string { return "id" },
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := r.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if n := logs.FilterMessage("following the changes of a shard failed and is tried again").Len(); n < 1 || n > 13 {
			t.Errorf("%d lines in a minute", n)
		}
		if n := logs.FilterMessage("the kinds that controllers own could not be read").Len(); n != 1 {
			t.Errorf("a damaged record is logged %d times", n)
		}
	})
}
