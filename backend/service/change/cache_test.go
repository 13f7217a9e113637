package change_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/sluicegw/sluice/backend/body"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/change"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

func TestCache_TheBodyOfAChangeIsReadOnceForAllListeners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, err := memory.Open(memory.Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = store.Close() }()
		svc, err := service.New(service.Config{Kinds: []descriptor.Kind{servicetest.Widget()}, Store: store})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go func() { _ = svc.Run(ctx) }()
		synctest.Wait()
		var streams [3]*change.Stream
		for i := range streams {
			if streams[i], err = svc.Feed.Changes(ctx, change.Request{Kinds: []string{"Widget"}}); err != nil {
				t.Fatal(err)
			}
			defer streams[i].Close()
			if got, err := streams[i].Next(ctx); err != nil || got[0].Type != change.InSync {
				t.Fatal(got, err)
			}
		}
		// More than are kept, so that the oldest go.
		for n := range 300 {
			want := fmt.Sprint("t", n)
			if _, err := svc.Writer.Create(ctx, service.CreateRequest{Identity: servicetest.Named(fmt.Sprint("w", n)), Spec: json.RawMessage(`{"title":"` + want + `"}`)}); err != nil {
				t.Fatal(err)
			}
			var bodies [len(streams)]*body.Body
			var listeners sync.WaitGroup
			for i, s := range streams {
				listeners.Go(func() {
					got, err := s.Next(ctx)
					if err != nil || len(got) != 1 {
						t.Error(got, err)
						return
					}
					if bodies[i], err = got[0].Body(); err != nil || servicetest.Title(bodies[i]) != want {
						t.Errorf("%+v %v", bodies[i], err)
					}
				})
			}
			listeners.Wait()
			for _, b := range bodies {
				if b != bodies[0] {
					t.Fatal("two listeners have two bodies of one change")
				}
			}
		}
	})
}
