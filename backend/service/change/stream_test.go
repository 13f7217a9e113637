package change_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/hub"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/change"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

// losing is a store whose watches can all lose their place at once.
type losing struct {
	*memory.Store
	mu   sync.Mutex
	lost chan struct{} // closed when those lose it that were opened until then
	// namespaces are those whose shard was asked for.
	namespaces []string
}

func (s *losing) Shard(namespace string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.namespaces = append(s.namespaces, namespace)
	return 0
}

func (s *losing) lose() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.lost)
	s.lost = make(chan struct{})
}

func (s *losing) Watch(ctx context.Context, w backend.Watch) (backend.Watcher, error) {
	inner, err := s.Store.Watch(ctx, w)
	s.mu.Lock()
	defer s.mu.Unlock()
	return &losingWatcher{inner, s.lost}, err
}

type losingWatcher struct {
	backend.Watcher
	lost chan struct{}
}

func (w *losingWatcher) Next(ctx context.Context) (backend.Delivery, error) {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-w.lost:
			cancel()
		case <-inner.Done():
		}
	}()
	d, err := w.Watcher.Next(inner)
	if errors.Is(err, context.Canceled) && ctx.Err() == nil {
		err = backend.ErrPositionExpired
	}
	return d, err
}

// streaming is a gateway that runs, in a bubble of its own time.
type streaming struct {
	*servicetest.Fixture
	lossy *losing
	hub   *hub.Hub // nil: the service's own
}

func inBubble(t *testing.T, cfg service.Config, queue hub.Config, test func(*streaming)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		store, err := memory.Open(memory.Config{})
		if err != nil {
			t.Fatal(err)
		}
		f := &streaming{Fixture: &servicetest.Fixture{T: t, Store: store}, lossy: &losing{Store: store, lost: make(chan struct{})}}
		cfg.Kinds, cfg.Store, queue.Store = []descriptor.Kind{servicetest.Widget(), servicetest.Cluster()}, f.lossy, f.lossy
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		run := func(r func(context.Context) error) {
			wg.Go(func() {
				if err := r(ctx); err != nil {
					t.Errorf("run: %v", err)
				}
			})
		}
		if queue != (hub.Config{Store: f.lossy}) {
			if cfg.Hub, err = hub.New(queue); err != nil {
				t.Fatal(err)
			}
			f.hub = cfg.Hub
			run(cfg.Hub.Run)
		}
		if f.Service, err = service.New(cfg); err != nil {
			t.Fatal(err)
		}
		run(f.Run)
		synctest.Wait()
		test(f)
		stop()
		wg.Wait()
	})
}

// open begins a stream that the test closes.
func (f *streaming) open(req change.Request) *change.Stream {
	f.T.Helper()
	c, err := f.Feed.Changes(f.T.Context(), req)
	if err != nil {
		f.T.Fatal(err)
	}
	return c
}

func TestStream_AnIdleStreamIsToldItsCursorNowAndThen(t *testing.T) {
	inBubble(t, service.Config{}, hub.Config{}, func(f *streaming) {
		c := f.open(change.Request{Name: servicetest.Pointer("mine")})
		defer c.Close()
		servicetest.Take(f.T, c, 1)
		begin := time.Now()
		f.CreateWidget("other", `{"title":"A"}`)
		at := f.LogPosition()
		mark := servicetest.Take(f.T, c, 1)[0]
		if mark.Type != change.Bookmark || mark.Cursor != at || time.Since(begin) != 30*time.Second {
			f.T.Errorf("%s at %s after %v, want BOOKMARK at %s after 30 s", mark.Type, mark.Cursor, time.Since(begin), at)
		}
		go func() {
			time.Sleep(20 * time.Second) // of the bubble
			f.CreateWidget("mine", `{"title":"A"}`)
		}()
		if s := servicetest.Story(servicetest.Take(f.T, c, 2)); s != "ADDED mine; BOOKMARK; " || time.Since(begin) != 80*time.Second {
			f.T.Errorf("stream %s after %v", s, time.Since(begin))
		}
		resumed := f.open(change.Request{After: &mark.Cursor})
		defer resumed.Close()
		if s := servicetest.Story(servicetest.Take(f.T, resumed, 2)); s != "ADDED mine; IN_SYNC; " {
			f.T.Errorf("after the bookmark: %s", s)
		}
	})
}

func TestStream_AStreamThatLosesItsPlaceBeginsAnewIfItAskedForTheState(t *testing.T) {
	inBubble(t, service.Config{}, hub.Config{}, func(f *streaming) {
		f.CreateWidget("a", `{"title":"A"}`)
		c := f.open(change.Request{Snapshot: true, Kinds: []string{"Widget"}})
		defer c.Close()
		bare := f.open(change.Request{})
		defer bare.Close()
		first := servicetest.Take(f.T, c, 3)
		f.CreateWidget("b", `{"title":"B"}`)
		first = append(first, servicetest.Take(f.T, c, 1)...)
		synctest.Wait()
		f.lossy.lose()
		time.Sleep(time.Second) // of the bubble
		second := servicetest.Take(f.T, c, 4)
		f.CreateWidget("c", `{"title":"C"}`)
		second = append(second, servicetest.Take(f.T, c, 1)...)
		if got, want := servicetest.Story(first)+servicetest.Story(second), "RESET; SNAPSHOT a; IN_SYNC; ADDED b; RESET; SNAPSHOT a; SNAPSHOT b; IN_SYNC; ADDED c; "; got != want {
			f.T.Errorf("stream %s\nwant   %s", got, want)
		}
		for i, e := range append(first, second...) {
			if (e.Cursor == "") != slices.Contains([]int{0, 1, 4, 5, 6}, i) {
				f.T.Errorf("event %d, %s: cursor %q", i, e.Type, e.Cursor)
			}
		}
		_, err := bare.Next(f.T.Context())
		for err == nil {
			_, err = bare.Next(f.T.Context())
		}
		servicetest.WantCode(f.T, err, failure.CodePositionExpired)
	})
}

func TestStream_AListenerThatLagsIsToldWhereToResume(t *testing.T) {
	inBubble(t, service.Config{}, hub.Config{Events: 2}, func(f *streaming) {
		c := f.open(change.Request{})
		servicetest.Take(f.T, c, 1)
		for i := range 5 {
			f.CreateWidget(fmt.Sprint("n", i), `{"title":"A"}`)
			synctest.Wait()
		}
		_, err := c.Next(f.T.Context())
		c.Close()
		e := servicetest.WantCode(f.T, err, failure.CodeLagged)
		if !e.Retryable {
			f.T.Error("not retryable")
		}
		c = f.open(change.Request{After: &e.Cursor})
		defer c.Close()
		if s := servicetest.Story(servicetest.Take(f.T, c, 6)); s != "ADDED n0; ADDED n1; ADDED n2; ADDED n3; ADDED n4; IN_SYNC; " {
			f.T.Errorf("after the cursor: %s", s)
		}
	})
}

func TestStream_OneListenerTooManyIsRefused(t *testing.T) {
	for name, req := range map[string]change.Request{"of changes": {}, "that begins with the state": {Snapshot: true}} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, service.Config{}, hub.Config{MaxSubscribers: 1}, func(f *streaming) {
				c := f.open(req)
				_, err := f.Feed.Changes(f.T.Context(), req)
				if e := servicetest.WantCode(f.T, err, failure.CodeLimitExceeded); !e.Retryable {
					f.T.Error("not retryable")
				}
				// Who was let in stays in, whatever it has to read.
				for synced := false; !synced; {
					events, err := c.Next(f.T.Context())
					if err != nil {
						f.T.Fatal(err)
					}
					synced = events[len(events)-1].Type == change.InSync
				}
				if n := f.hub.Subscribers(); n != 1 {
					f.T.Errorf("%d streams", n)
				}
				c.Close()
				c = f.open(req)
				c.Close()
				c.Close()
				if n := f.hub.Subscribers(); n != 0 {
					f.T.Errorf("%d streams", n)
				}
			})
		})
	}
}

func TestStream_AStreamDependsOnNoMoreShardsThanItCovers(t *testing.T) {
	for name, c := range map[string]struct {
		req  change.Request
		want []string
	}{
		"of all":           {change.Request{}, nil},
		"of a namespace":   {change.Request{Namespace: servicetest.Pointer("x")}, []string{"x"}},
		"of a GLOBAL kind": {change.Request{Kinds: []string{"Cluster"}}, []string{""}},
		"of a kind":        {change.Request{Kinds: []string{"Widget"}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			store := &losing{Store: servicetest.OpenMemory(t), lost: make(chan struct{})}
			global := servicetest.Cluster()
			global.Verbs = append(global.Verbs, descriptor.VerbWatch)
			s, err := service.New(service.Config{Kinds: []descriptor.Kind{servicetest.Widget(), global}, Store: store})
			if err != nil {
				t.Fatal(err)
			}
			stream, err := s.Feed.Changes(t.Context(), c.req)
			if err != nil {
				t.Fatal(err)
			}
			stream.Close()
			if !slices.Equal(store.namespaces, c.want) {
				t.Errorf("shards of %q, want %q", store.namespaces, c.want)
			}
		})
	}
}

// TestStream_ListenersOfAGatewayThatRunsSeeWhatIsStored races writers with listeners
// that begin with the state, cut off and resume.
func TestStream_ListenersOfAGatewayThatRunsSeeWhatIsStored(t *testing.T) {
	inBubble(t, service.Config{}, hub.Config{Events: 20}, func(f *streaming) {
		const rounds = 300
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				state := map[string]string{}
				req := change.Request{Snapshot: true}
				for n := 0; state["last"] == ""; n++ {
					c := f.open(req)
					for cut := 0; cut < 10*(i+1) && state["last"] == ""; cut++ {
						batch, err := c.Next(f.T.Context())
						if err != nil { // it resumes from the cursor it has
							if e := new(failure.Error); !errors.As(err, &e) || e.Code != failure.CodeLagged {
								f.T.Errorf("listener %d: %v", i, err)
							}
							break
						}
						for _, e := range batch {
							if e.Type == change.Reset {
								clear(state)
								req.After = nil
							}
							if e.Cursor != "" {
								req.After = &e.Cursor
							}
							switch {
							case e.Stored == nil:
							case e.Type == change.Deleted:
								delete(state, e.Stored.Name)
							default:
								state[e.Stored.Name] = e.Revision
							}
						}
						time.Sleep(time.Duration(i) * time.Millisecond) // of the bubble
					}
					c.Close()
				}
				for k := range rounds / 10 {
					name := fmt.Sprint("n", k)
					want := ""
					if r := f.Stored(name); r != nil {
						want = r.Revision.String()
					}
					if state[name] != want {
						f.T.Errorf("listener %d has %s at %q, want %q", i, name, state[name], want)
					}
				}
			})
		}
		for n := range rounds {
			name := fmt.Sprint("n", n%(rounds/10))
			if f.Stored(name) != nil && n%3 == 0 {
				if _, err := f.Writer.Delete(f.T.Context(), service.DeleteRequest{Identity: servicetest.Named(name)}); err != nil {
					f.T.Error(err)
				}
			} else if _, err := f.Writer.Upsert(f.T.Context(), service.UpsertRequest{Identity: servicetest.Named(name), Spec: map[string]any{"title": fmt.Sprint(n)}}); err != nil {
				f.T.Error(err)
			}
			if n%7 == 0 {
				time.Sleep(time.Millisecond) // of the bubble
			}
			if n%100 == 50 {
				f.lossy.lose()
			}
		}
		f.CreateWidget("last", `{"title":"Z"}`)
		wg.Wait()
	})
}
