package bolt_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/bolt"
)

var errInjected = errors.New("injected")

// faults is a commit seam that fails by a plan.
type faults struct {
	mu    sync.Mutex
	plan  func(n int) (before, after bool)
	calls int
}

func (f *faults) commit(commit func() error) error {
	f.mu.Lock()
	f.calls++
	before, after := f.plan(f.calls)
	f.mu.Unlock()
	if before {
		return errInjected
	}
	if err := commit(); err != nil || !after {
		return err
	}
	return errInjected
}

func (f *faults) set(plan func(n int) (before, after bool)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.plan = plan
}

func healthy(int) (before, after bool)       { return false, false }
func failBefore(int) (before, after bool)    { return true, false }
func failsAfter(int) (before, after bool)    { return false, true }
func pause(d time.Duration) <-chan time.Time { return time.After(d) }

// faulty opens a store over a seam that is healthy at first.
func faulty(t testing.TB) (*bolt.Store, *faults) {
	f := &faults{plan: healthy}
	return mustOpen(t, bolt.Config{Path: filepath.Join(t.TempDir(), "sluice.db")}.WithCommit(f.commit)), f
}

// TestCommitFaults fails commits at random, before and after they reach the
// file, under writers and watchers. Nobody is lied to, and the log tells who
// is right where nobody could say.
func TestCommitFaults(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, f := faulty(t)
				rnd := rand.New(rand.NewPCG(seed, 0))
				begin, _ := s.Position(t.Context())
				f.set(func(int) (bool, bool) { n := rnd.IntN(10); return n == 0, n == 1 })
				var mu sync.Mutex
				outcome := map[string]error{}
				position := map[string]backend.Revision{}
				var writers, watchers sync.WaitGroup
				for w := range 8 {
					writers.Go(func() {
						for i := range 60 {
							id := fmt.Sprintf("w%d-%d", w, i)
							b := batch(s, id, id, "1")
							b.Actions[0].If = backend.Condition{Presence: backend.Absent}
							res, err := s.Apply(t.Context(), b)
							mu.Lock()
							outcome[id] = err
							position[id] = res.Position.Shard(0)
							mu.Unlock()
							if errors.Is(err, backend.ErrUnavailable) {
								<-pause(5 * time.Millisecond)
							}
						}
					})
				}
				done, cancel := context.WithCancel(t.Context())
				seen := make([][]backend.Event, 3)
				for w := range seen {
					watchers.Go(func() { seen[w] = persist(done, t, s, begin) })
				}
				writers.Wait()
				f.set(healthy)
				<-pause(10 * time.Second)
				mustPut(t, s, "last")
				synctest.Wait()
				cancel()
				watchers.Wait()
				history := replay(t, s, begin)
				applied := map[string]int{}
				for _, e := range history {
					applied[e.RequestID]++
				}
				unknown := 0
				for id, err := range outcome {
					switch n := applied[id]; {
					case err == nil && n != 1:
						t.Errorf("%s was acknowledged and applied %d times", id, n)
					case errors.Is(err, backend.ErrUnknown):
						unknown++
					case err != nil && n != 0:
						t.Errorf("%s was applied, its caller heard %v", id, err)
					case err != nil && !errors.Is(err, backend.ErrUnavailable):
						t.Errorf("%s: %v", id, err)
					}
				}
				if unknown == 0 {
					t.Error("no outcome was unknown: the faults did not strike")
				}
				for w, events := range seen {
					if len(events) != len(history) {
						t.Errorf("watcher %d saw %d changes, the log has %d", w, len(events), len(history))
						continue
					}
					for i := range events {
						if events[i].Revision != history[i].Revision || events[i].RequestID != history[i].RequestID {
							t.Errorf("watcher %d saw %s at %d, the log has %s", w, events[i].Revision, i, history[i].Revision)
							break
						}
					}
				}
				if err := s.Check(t.Context()); err != nil {
					t.Error(err)
				}
				mustClose(t, s)
			})
		})
	}
}

// persist watches until ctx ends, and resumes whenever the store was unavailable.
func persist(ctx context.Context, t *testing.T, s *bolt.Store, from backend.Position) []backend.Event {
	var events []backend.Event
	for ctx.Err() == nil {
		w, err := s.Watch(ctx, backend.Watch{From: from, MaxLag: 1 << 30})
		for err == nil {
			var d backend.Delivery
			if d, err = w.Next(ctx); err == nil {
				events = append(events, d.Events...)
				from = d.Position
			}
		}
		if w != nil {
			w.Close()
		}
		switch {
		case errors.Is(err, backend.ErrUnavailable):
			<-pause(5 * time.Millisecond)
		case ctx.Err() == nil:
			t.Errorf("watch from %s: %v", from.Shard(0), err)
			return events
		}
	}
	return events
}

func TestFaults(t *testing.T) {
	for _, test := range []struct {
		says string
		run  func(t *testing.T)
	}{
		{"a commit that failed before it reached the file leaves no trace but a new epoch", func(t *testing.T) {
			s, f := faulty(t)
			first := mustPut(t, s, "a").Position
			failOnce(f, failBefore)
			_, err := s.Apply(t.Context(), batch(s, "lost", "a", "2"))
			wantErr(t, err, backend.ErrUnknown)
			p, err := s.Position(t.Context())
			wantErr(t, err, nil)
			if p.Shard(0).Epoch <= first.Shard(0).Epoch || p.Shard(0).Seq != 0 {
				t.Errorf("position %s after %s", p.Shard(0), first.Shard(0))
			}
			if events := replay(t, s, first); len(events) != 0 {
				t.Errorf("events %v", events)
			}
		}},
		{"a commit that failed after it reached the file is in the log, under the old epoch", func(t *testing.T) {
			s, f := faulty(t)
			first := mustPut(t, s, "a").Position
			failOnce(f, failsAfter)
			_, err := s.Apply(t.Context(), batch(s, "kept", "a", "2"))
			wantErr(t, err, backend.ErrUnknown)
			events := replay(t, s, first)
			if len(events) != 1 || events[0].RequestID != "kept" || events[0].Revision.Epoch != first.Shard(0).Epoch {
				t.Errorf("events %v", events)
			}
			if p, err := s.Position(t.Context()); err != nil || p.Shard(0).Epoch <= first.Shard(0).Epoch {
				t.Errorf("position %s, error %v", p.Shard(0), err)
			}
		}},
		{"a watcher goes on over a failed commit", func(t *testing.T) {
			for _, fault := range []func(int) (bool, bool){failBefore, failsAfter} {
				s, f := faulty(t)
				w, err := s.Watch(t.Context(), backend.Watch{})
				wantErr(t, err, nil)
				_, err = w.Next(t.Context())
				wantErr(t, err, nil)
				failOnce(f, fault)
				_, err = s.Apply(t.Context(), batch(s, "x", "a", "2"))
				wantErr(t, err, backend.ErrUnknown)
				mustPut(t, s, "b")
				var got []string
				for len(got) == 0 || got[len(got)-1] != "put-b" {
					d, err := w.Next(t.Context())
					wantErr(t, err, nil)
					for _, e := range d.Events {
						got = append(got, e.RequestID)
					}
				}
				if len(got) > 2 {
					t.Errorf("events %q", got)
				}
				w.Close()
				mustClose(t, s)
			}
		}},
		{"while the file cannot be opened every call says so at once, and no call tries more often than the pauses allow", func(t *testing.T) {
			s, f := faulty(t)
			mustPut(t, s, "a")
			w, err := s.Watch(t.Context(), backend.Watch{})
			wantErr(t, err, nil)
			f.set(failBefore)
			_, err = s.Apply(t.Context(), batch(s, "x", "a", "2"))
			wantErr(t, err, backend.ErrUnknown)
			_, err = w.Next(t.Context())
			wantErr(t, err, backend.ErrUnavailable)
			start := time.Now()
			for time.Since(start) < time.Minute {
				_, err := s.Get(t.Context(), key("a"))
				wantErr(t, err, backend.ErrUnavailable)
				_, err = s.Apply(t.Context(), batch(s, "x", "a", "3"))
				wantErr(t, err, backend.ErrUnavailable)
				_, err = s.Position(t.Context())
				wantErr(t, err, backend.ErrUnavailable)
				_, err = s.Watch(t.Context(), backend.Watch{})
				wantErr(t, err, backend.ErrUnavailable)
				<-pause(10 * time.Millisecond)
			}
			if f.calls > 30 {
				t.Errorf("%d tries in a minute", f.calls)
			}
			f.set(healthy)
			<-pause(5 * time.Second)
			rs, err := s.Get(t.Context(), key("a"))
			wantErr(t, err, nil)
			if string(rs[0].Body) != "j1" {
				t.Errorf("body %s", rs[0].Body)
			}
			mustPut(t, s, "b")
		}},
		{"Run outlives faults and purges after them", func(t *testing.T) {
			s, f := faulty(t)
			b := batch(s, "x", "a", "1")
			b.Actions[0].Put.ExpiresAt = time.Now().Add(10 * time.Second)
			_, err := s.Apply(t.Context(), b)
			wantErr(t, err, nil)
			ran := make(chan error, 1)
			go func() { ran <- s.Run(t.Context()) }()
			<-pause(5 * time.Second)
			f.set(failBefore)
			<-pause(20 * time.Second)
			f.set(healthy)
			<-pause(20 * time.Second)
			w, err := s.Watch(t.Context(), backend.Watch{})
			wantErr(t, err, nil)
			defer w.Close()
			if err := s.Check(t.Context()); err != nil {
				t.Error(err)
			}
			if n, err := s.Purge(t.Context()); n != 0 || err != nil {
				t.Errorf("%d were left to purge, error %v", n, err)
			}
			mustClose(t, s)
			wantErr(t, <-ran, nil)
		}},
		{"a store that is unavailable closes", func(t *testing.T) {
			s, f := faulty(t)
			f.set(failBefore)
			_, err := s.Apply(t.Context(), batch(s, "x", "a", "2"))
			wantErr(t, err, backend.ErrUnknown)
			mustClose(t, s)
			_, err = s.Get(t.Context(), key("a"))
			wantErr(t, err, backend.ErrClosed)
		}},
	} {
		t.Run(test.says, func(t *testing.T) { synctest.Test(t, test.run) })
	}
}

// failOnce fails the next commit.
func failOnce(f *faults, fault func(int) (bool, bool)) {
	f.mu.Lock()
	at := f.calls + 1
	f.mu.Unlock()
	f.set(func(n int) (bool, bool) {
		if n == at {
			return fault(n)
		}
		return false, false
	})
}

func wantErr(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("error %v, want %v", err, want)
	}
}
