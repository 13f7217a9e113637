package gateway

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend/hub"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/cmd/sluice/sdl"
	"github.com/sluicegw/sluice/graph/server"
)

func TestAGatewayIsReadyOnceAllIsInMemoryAndStaysSo(t *testing.T) {
	s := openShop(t, shelves)
	served, err := sdl.Read(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	h, err := hub.New(hub.Config{Store: s.store})
	if err != nil {
		t.Fatal(err)
	}
	svc, err := service.New(service.Config{Kinds: served.Kinds, Store: s.store, Hub: h})
	if err != nil {
		t.Fatal(err)
	}
	c := newCatalogues("", served, svc)
	ready := c.ready(s.store, time.Hour)
	var unready *server.NotReadyError
	if err := ready(t.Context()); !errors.As(err, &unready) || len(c.filling()) != len(served.Kinds) {
		t.Fatalf("before anything is read: %v, %q", err, c.filling())
	}
	if err := c.ready(s.store, 0)(t.Context()); err != nil {
		t.Errorf("after ready-timeout: %v", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var ran sync.WaitGroup
	ran.Go(func() { _ = h.Run(ctx) })
	ran.Go(func() { _ = svc.Index().Run(ctx) })
	if err := svc.Index().Filled(ctx); err != nil {
		t.Fatal(err)
	}
	if err := ready(t.Context()); err != nil || len(c.filling()) != 0 {
		t.Errorf("once all is in memory: %v, %q", err, c.filling())
	}
	stop()
	ran.Wait()
	if err := ready(t.Context()); err != nil || len(c.filling()) != len(served.Kinds) {
		t.Errorf("when it has to be read again: %v, %q", err, c.filling())
	}
}
