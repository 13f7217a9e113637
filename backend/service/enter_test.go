package service_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/failure"
)

// entered is a service whose writes are counted while they are under way, and are
// let in or not.
type entered struct {
	*service.Service
	closed bool
	inside atomic.Int32
	kinds  []string
}

func newEntered(t *testing.T, wrap func(backend.Store) backend.Store) *entered {
	t.Helper()
	kept, err := memory.Open(memory.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = kept.Close() })
	e := &entered{}
	e.Service, err = service.New(service.Config{Kinds: []descriptor.Kind{widget(), cluster()}, Store: wrap(kept), Enter: func(kind string) (func(), bool) {
		e.kinds = append(e.kinds, kind)
		e.inside.Add(1)
		return func() { e.inside.Add(-1) }, !e.closed
	}})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestEveryVerbThatWritesIsLetInOrToldToComeAgain and nothing is changed by those that are not.
func TestEveryVerbThatWritesIsLetInOrToldToComeAgain(t *testing.T) {
	e := newEntered(t, func(s backend.Store) backend.Store { return s })
	ctx := t.Context()
	spec := map[string]any{"title": "A"}
	revision := ""
	verbs := map[string]func() (*service.Written, error){
		"create": func() (*service.Written, error) {
			return e.Create(ctx, anon, service.CreateRequest{Identity: named("new"), Spec: spec})
		},
		"upsert": func() (*service.Written, error) {
			return e.Upsert(ctx, anon, service.UpsertRequest{Identity: named("a"), Spec: map[string]any{"title": "B"}})
		},
		"patch": func() (*service.Written, error) {
			return e.Patch(ctx, anon, service.PatchRequest{Identity: named("a"), ExpectedRevision: revision, Patch: map[string]any{"title": "C"}})
		},
		"status": func() (*service.Written, error) {
			return e.UpdateStatus(ctx, anon, service.StatusRequest{Identity: named("a"), ExpectedRevision: revision, Status: map[string]any{"id": "x"}})
		},
		"delete": func() (*service.Written, error) {
			return e.Delete(ctx, anon, service.DeleteRequest{Identity: named("a")})
		},
	}
	first, err := e.Create(ctx, anon, service.CreateRequest{Identity: named("a"), Spec: spec})
	if err != nil {
		t.Fatal(err)
	}
	revision = first.Resource.Stored.Revision.String()
	e.closed = true
	for name, verb := range verbs {
		e.kinds = nil
		_, err := verb()
		var told *failure.Error
		if !errors.As(err, &told) || told.Code != failure.CodeUnavailable || !told.Retryable || told.Outcome != "" || told.Kind != "Widget" {
			t.Errorf("%s is told %v", name, err)
		}
		if len(e.kinds) != 1 || e.kinds[0] != "Widget" {
			t.Errorf("%s asked for %v", name, e.kinds)
		}
	}
	e.closed = false
	e.inside.Store(0)
	for _, name := range []string{"patch", "create", "upsert", "delete"} { // the revision is still the first one
		if _, err := verbs[name](); err != nil || e.inside.Load() != 0 {
			t.Errorf("%s: %v, %d are under way", name, err, e.inside.Load())
		}
	}
}

// leaving is a store whose answers are lost, with the clients.
type leaving struct {
	backend.Store
	leave context.CancelFunc
}

func (s *leaving) Apply(context.Context, backend.Batch) (backend.Result, error) {
	s.leave()
	return backend.Result{}, backend.ErrUnknown
}

// TestAWriteThatMayStillComeIsUnderWay although its client has left.
func TestAWriteThatMayStillComeIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, leave := context.WithCancel(t.Context())
		e := newEntered(t, func(s backend.Store) backend.Store { return &leaving{s, leave} })
		if _, err := e.Create(ctx, anon, service.CreateRequest{Identity: named("a"), Spec: map[string]any{"title": "A"}}); !errors.Is(err, backend.ErrUnknown) {
			t.Fatalf("it is told %v", err)
		}
		time.Sleep(5 * time.Second) // of the bubble
		if e.inside.Load() != 1 {
			t.Errorf("%d are under way before the deadline", e.inside.Load())
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if e.inside.Load() != 0 {
			t.Errorf("%d are under way after the deadline", e.inside.Load())
		}
	})
}
