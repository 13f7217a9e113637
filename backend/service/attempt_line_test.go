package service_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/hub"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

// fault is what happens to a batch on its way.
type fault int

const (
	none        fault = iota
	replyLost         // applied, and the answer is lost
	requestLost       // never arrives
	delayed           // arrives after two seconds, when the answer was given up
	twice             // never arrives at first, but after its deadline
)

func (f fault) String() string {
	return [...]string{"nothing lost", "reply lost", "request lost", "request delayed", "request arrives too late"}[f]
}

// lossy is a store on a bad line.
type lossy struct {
	*memory.Store
	t  *testing.T
	wg sync.WaitGroup // batches that are still under way

	mu     sync.Mutex
	next   func() fault
	sent   func()          // happens when a batch was sent, before its answer is lost
	ids    map[string]bool // of all batches that were sent
	late   []error         // what the store said to those that came late
	down   bool            // nothing but writes gets through
	synced error           // what Sync says
	syncs  int
}

func (s *lossy) Apply(ctx context.Context, b backend.Batch) (backend.Result, error) {
	s.mu.Lock()
	what := s.next()
	if s.ids[b.RequestID] {
		s.t.Errorf("request id %s is sent again", b.RequestID)
	}
	s.ids[b.RequestID] = true
	s.mu.Unlock()
	if what != none && s.sent != nil {
		defer s.sent()
	}
	lost := fmt.Errorf("%w: the line is bad", backend.ErrUnknown)
	arrive := func(after time.Duration) {
		s.wg.Go(func() {
			time.Sleep(after) // of the bubble
			_, err := s.Store.Apply(context.Background(), b)
			s.mu.Lock()
			defer s.mu.Unlock()
			s.late = append(s.late, err)
		})
	}
	switch what {
	case replyLost:
		if res, err := s.Store.Apply(ctx, b); err != nil {
			return res, err
		}
		arrive(6 * time.Second)
		return backend.Result{}, lost
	case requestLost:
		return backend.Result{}, lost
	case delayed:
		arrive(2 * time.Second)
		return backend.Result{}, lost
	case twice:
		arrive(6 * time.Second)
		return backend.Result{}, lost
	}
	return s.Store.Apply(ctx, b)
}

func (s *lossy) isDown() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.down
}

func (s *lossy) Position(ctx context.Context) (backend.Position, error) {
	if s.isDown() {
		return backend.Position{}, backend.ErrUnavailable
	}
	return s.Store.Position(ctx)
}

func (s *lossy) Watch(ctx context.Context, w backend.Watch) (backend.Watcher, error) {
	if s.isDown() {
		return nil, backend.ErrUnavailable
	}
	return s.Store.Watch(ctx, w)
}

func (s *lossy) Sync(context.Context, string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.syncs++
	return s.synced
}

// badLine is a gateway whose line to the store is bad, and another client of
// the same store whose line is good.
type badLine struct {
	*fixture
	line *lossy
}

func onABadLine(t *testing.T, cfg memory.Config, runs bool, test func(*badLine)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		store, err := memory.Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		f := &badLine{&fixture{&servicetest.Fixture{T: t, Store: store}}, &lossy{Store: store, t: t, ids: map[string]bool{}, next: func() fault { return none }}}
		h, err := hub.New(hub.Config{Store: f.line})
		if err != nil {
			t.Fatal(err)
		}
		if f.Service, err = service.New(service.Config{Kinds: []descriptor.Kind{servicetest.Widget(), servicetest.Cluster()}, Store: f.line, Hub: h}); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			if runs {
				if err := h.Run(ctx); err != nil {
					t.Errorf("run: %v", err)
				}
			}
		}()
		synctest.Wait()
		test(f)
		f.line.wg.Wait()
		stop()
		<-done
	})
}

// faults happen to the next batches of the gateway, one each.
func (f *badLine) faults(list ...fault) {
	f.line.next = func() fault {
		if len(list) == 0 {
			return none
		}
		what := list[0]
		list = list[1:]
		return what
	}
}

// ours are the changes in the log that came from the gateway.
func (f *badLine) ours(from backend.Position) (out []backend.Event) {
	f.T.Helper()
	w, err := f.Store.Watch(f.T.Context(), backend.Watch{From: from})
	if err != nil {
		f.T.Fatal(err)
	}
	defer w.Close()
	for {
		d, err := w.Next(f.T.Context())
		if err != nil {
			f.T.Fatal(err)
		}
		for _, e := range d.Events {
			if f.line.ids[e.RequestID] {
				out = append(out, e)
			}
		}
		if d.CaughtUp {
			return out
		}
	}
}

func (f *badLine) at() backend.Position {
	f.T.Helper()
	p, err := f.Store.Position(f.T.Context())
	if err != nil {
		f.T.Fatal(err)
	}
	return p
}

// verbs are all ways to change a widget "a" whose revision is r.
func (f *badLine) verbs() map[string]func(ctx context.Context, r string) (*service.Written, error) {
	id, spec := servicetest.Named("a"), map[string]any{"title": "ours"}
	return map[string]func(context.Context, string) (*service.Written, error){
		"create": func(ctx context.Context, _ string) (*service.Written, error) {
			return f.Writer.Create(ctx, service.CreateRequest{Identity: servicetest.Named("new"), Spec: spec})
		},
		"update": func(ctx context.Context, r string) (*service.Written, error) {
			return f.Writer.Update(ctx, service.UpdateRequest{Identity: id, ExpectedRevision: r, Spec: spec})
		},
		"patch": func(ctx context.Context, r string) (*service.Written, error) {
			return f.Writer.Patch(ctx, service.PatchRequest{Identity: id, ExpectedRevision: r, Patch: spec})
		},
		"upsert": func(ctx context.Context, _ string) (*service.Written, error) {
			return f.Writer.Upsert(ctx, service.UpsertRequest{Identity: id, Spec: spec})
		},
		"upsert of a new one": func(ctx context.Context, _ string) (*service.Written, error) {
			return f.Writer.Upsert(ctx, service.UpsertRequest{Identity: servicetest.Named("new"), Spec: spec})
		},
		"status": func(ctx context.Context, r string) (*service.Written, error) {
			return f.Writer.UpdateStatus(ctx, service.StatusRequest{Identity: id, ExpectedRevision: r, Status: map[string]any{"id": "ours"}})
		},
		"delete": func(ctx context.Context, _ string) (*service.Written, error) {
			return f.Writer.Delete(ctx, service.DeleteRequest{Identity: id})
		},
		"delete at a revision": func(ctx context.Context, r string) (*service.Written, error) {
			return f.Writer.Delete(ctx, service.DeleteRequest{Identity: id, ExpectedRevision: &r})
		},
	}
}
