package service_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service"
)

func TestAChangeIsDecodedOnceForAllListeners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, err := memory.Open(memory.Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = store.Close() }()
		var decoded atomic.Int32
		kind := widget()
		kind.Decode = func(r *backend.Resource) (backend.Object, error) {
			decoded.Add(1)
			return decodeWidget(r)
		}
		svc, err := service.New(service.Config{Kinds: []backend.Kind{kind}, Store: store})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go func() { _ = svc.Run(ctx) }()
		synctest.Wait()
		var streams [3]*service.Changes
		for i := range streams {
			if streams[i], err = svc.Changes(ctx, service.Caller{}, service.ChangesRequest{Kinds: []string{"Widget"}}); err != nil {
				t.Fatal(err)
			}
			defer streams[i].Close()
			if got, err := streams[i].Next(ctx); err != nil || got[0].Type != service.ChangeInSync {
				t.Fatal(got, err)
			}
		}
		// More than are kept, so that the oldest go.
		for n := range 300 {
			title := fmt.Sprint("t", n)
			if _, err := svc.Create(ctx, service.Caller{}, service.CreateRequest{Identity: named(fmt.Sprint("w", n)), Spec: json.RawMessage(`{"title":"` + title + `"}`)}); err != nil {
				t.Fatal(err)
			}
			decoded.Store(0)
			var listeners sync.WaitGroup
			for _, s := range streams {
				listeners.Go(func() {
					got, err := s.Next(ctx)
					if err != nil || len(got) != 1 {
						t.Error(got, err)
						return
					}
					obj, err := got[0].Object()
					if err != nil || obj.(*object).spec["title"] != title {
						t.Errorf("%+v %v", obj, err)
					}
				})
			}
			listeners.Wait()
			if d := decoded.Load(); d != 1 {
				t.Fatalf("decoded %d times for %d listeners", d, len(streams))
			}
		}
	})
}
