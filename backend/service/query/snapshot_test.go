package query_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/query"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

// lagging is a store whose changes arrive late: while it is stopped, none does.
type lagging struct {
	*memory.Store
	mu   sync.Mutex // guards open
	open chan struct{}
}

func (l *lagging) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = make(chan struct{})
}

func (l *lagging) goOn() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.open)
}

func (l *lagging) gate() chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open
}

func (l *lagging) Watch(ctx context.Context, w backend.Watch) (backend.Watcher, error) {
	inner, err := l.Store.Watch(ctx, w)
	return &lateWatcher{inner, l}, err
}

type lateWatcher struct {
	backend.Watcher
	of *lagging
}

func (w *lateWatcher) Next(ctx context.Context) (backend.Delivery, error) {
	d, err := w.Watcher.Next(ctx)
	select {
	case <-w.of.gate():
	case <-ctx.Done():
	}
	return d, err
}

// TestSnapshot_OfTwoRightsHasNoBasis asks for rights before the index has come up with the store, and reads by later
// ones: what was read is not what the first rights see.
func TestSnapshot_OfTwoRightsHasNoBasis(t *testing.T) {
	for name, changes := range map[string]bool{"the rights change": true, "they stay": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { readWhileLagging(t, changes) })
		})
	}
}

func readWhileLagging(t *testing.T, changes bool) {
	store, err := memory.Open(memory.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	f := guarded(t, store, 0, servicetest.Widget())
	late := &lagging{Store: store}
	late.stop()
	late.goOn()
	svc, err := service.New(service.Config{
		Kinds: append(servicetest.PolicyKinds(t), servicetest.Widget()), Store: late,
		Access: access.Config{Enabled: true, AdminGroup: servicetest.AdminGroup},
	})
	if err != nil {
		t.Fatal(err)
	}
	running, stop := context.WithCancel(context.Background())
	var runs sync.WaitGroup
	runs.Go(func() { _ = svc.Run(running) })
	defer runs.Wait()
	defer stop()
	f.Give(servicetest.Allow("Widget", "GET", "LIST"))
	synctest.Wait()

	late.stop()
	f.Give(servicetest.Allow("Widget", "GET", "LIST", "PATCH"))
	ctx, snapshot := query.WithSnapshot(access.WithCaller(t.Context(), servicetest.As("token:u")))
	snapshot.Record()
	done := make(chan error, 1)
	go func() {
		_, err := svc.Reader.Rights(ctx) // the view is not in time
		done <- err
	}()
	time.Sleep(time.Second) // by then the view is given up, and the policy is waited for
	late.goOn()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if changes {
		f.Give(servicetest.Allow("Widget", "GET", "LIST", "DELETE"))
	}
	if _, err := svc.Reader.List(ctx, query.ListRequest{Kind: "Widget"}); err != nil {
		t.Fatal(err)
	}
	if _, ok := snapshot.Basis(); ok == changes {
		t.Errorf("it has a basis: %v", ok)
	}
}
