package bolt_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/bolt"
)

// gated opens a store whose commits wait until the gate lets them through.
func gated(t *testing.T) (s *bolt.Store, gate chan struct{}) {
	gate = make(chan struct{}, 1<<20)
	gate <- struct{}{}
	return mustOpen(t, bolt.Config{Path: filepath.Join(t.TempDir(), "sluice.db")}.WithCommit(func(commit func() error) error {
		<-gate
		return commit()
	})), gate
}

func TestCommit_Queue(t *testing.T) {
	for _, test := range []struct {
		says string
		run  func(t *testing.T)
	}{
		{"calls that come during a commit share the next one", func(t *testing.T) {
			s, gate := gated(t)
			var writers sync.WaitGroup
			for i := range 101 {
				writers.Go(func() { mustPut(t, s, fmt.Sprint("n", i)) })
				synctest.Wait()
			}
			if n := s.WritesWaiting(); n != 100 {
				t.Errorf("%d calls wait", n)
			}
			gate <- struct{}{}
			gate <- struct{}{}
			writers.Wait()
			mustClose(t, s)
		}},
		{"a transaction that logs more than the log holds trims it to its bound", func(t *testing.T) {
			const calls, entries = 100, 10
			gate := make(chan struct{}, 4)
			gate <- struct{}{}
			s := mustOpen(t, bolt.Config{Path: filepath.Join(t.TempDir(), "sluice.db"), LogEntries: entries}.WithCommit(func(commit func() error) error {
				<-gate
				return commit()
			}))
			var writers sync.WaitGroup
			for i := range calls {
				writers.Go(func() { mustPut(t, s, fmt.Sprint("n", i)) })
				synctest.Wait()
			}
			gate <- struct{}{}
			gate <- struct{}{}
			writers.Wait()
			at, err := s.Position(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			before := func(n uint64) backend.Watch {
				head := at.Shard(0)
				return backend.Watch{From: backend.NewPosition(backend.Revision{Epoch: head.Epoch, Seq: head.Seq - n})}
			}
			_, err = s.Watch(t.Context(), before(entries+1))
			wantErr(t, err, backend.ErrPositionExpired)
			w, err := s.Watch(t.Context(), before(entries))
			wantErr(t, err, nil)
			defer w.Close()
			if d, err := w.Next(t.Context()); err != nil || len(d.Events) != entries {
				t.Errorf("%d changes, error %v", len(d.Events), err)
			}
			mustClose(t, s)
		}},
		{"a call that is given up while it waits is certainly not applied", func(t *testing.T) {
			s, gate := gated(t)
			var writers sync.WaitGroup
			writers.Go(func() { mustPut(t, s, "a") })
			synctest.Wait()
			ctx, cancel := context.WithCancel(t.Context())
			writers.Go(func() {
				_, err := s.Apply(ctx, batch(s, "given-up", "b", "1"))
				wantErr(t, err, context.Canceled)
			})
			synctest.Wait()
			cancel()
			time.Sleep(50 * time.Millisecond) // of the bubble: until then a call looks at nothing but its commit
			synctest.Wait()
			if n := s.WritesWaiting(); n != 0 {
				t.Errorf("%d calls wait", n)
			}
			gate <- struct{}{}
			writers.Wait()
			rs, err := s.Get(t.Context(), key("a"), key("b"))
			if err != nil || rs[0] == nil || rs[1] != nil {
				t.Errorf("resources %v, error %v", rs, err)
			}
			mustClose(t, s)
		}},
		{"the place of the log is not told while a call that was given up is being committed", func(t *testing.T) {
			s, gate := gated(t)
			from, err := s.Position(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			var calls sync.WaitGroup
			calls.Go(func() {
				_, err := s.Apply(ctx, batch(s, "given-up", "a", "1"))
				wantErr(t, err, backend.ErrUnknown)
			})
			synctest.Wait()
			cancel()
			calls.Wait()
			time.Sleep(time.Minute) // of the bubble: its deadline is long past
			impatient, stop := context.WithTimeout(t.Context(), time.Second)
			defer stop()
			_, err = s.Position(impatient)
			wantErr(t, err, context.DeadlineExceeded)
			var seen backend.Position
			var events []backend.Event
			calls.Go(func() {
				var err error
				if seen, err = s.Position(t.Context()); err != nil {
					t.Error(err)
				}
			})
			calls.Go(func() {
				w, err := s.Watch(t.Context(), backend.Watch{From: from})
				if err != nil {
					t.Error(err)
					return
				}
				defer w.Close()
				d, err := w.Next(t.Context())
				if err != nil || !d.CaughtUp {
					t.Errorf("mark %v, error %v", d.CaughtUp, err)
				}
				events = d.Events
			})
			synctest.Wait()
			gate <- struct{}{}
			calls.Wait()
			if seen.Equal(from) || len(events) != 1 {
				t.Errorf("at %s after %s, with %d changes", seen, from, len(events))
			}
			mustClose(t, s)
		}},
		{"a call that is given up during its commit hears that nobody knows", func(t *testing.T) {
			s, gate := gated(t)
			ctx, cancel := context.WithCancel(t.Context())
			failed := make(chan error, 1)
			go func() {
				_, err := s.Apply(ctx, batch(s, "x", "a", "1"))
				failed <- err
			}()
			synctest.Wait()
			cancel()
			err := <-failed
			wantErr(t, err, backend.ErrUnknown)
			wantErr(t, err, context.Canceled)
			gate <- struct{}{}
			synctest.Wait()
			if rs, err := s.Get(t.Context(), key("a")); err != nil || rs[0] == nil {
				t.Errorf("resources %v, error %v", rs, err)
			}
			mustClose(t, s)
		}},
		{"a full queue makes callers wait, bounded by their context", func(t *testing.T) {
			s, gate := gated(t)
			var writers sync.WaitGroup
			for i := range 1024 {
				writers.Go(func() { mustPut(t, s, fmt.Sprint("n", i)) })
			}
			synctest.Wait()
			ctx, cancel := context.WithCancel(t.Context())
			failed := make(chan error, 1)
			go func() {
				_, err := s.Apply(ctx, batch(s, "x", "over", "1"))
				failed <- err
			}()
			synctest.Wait()
			cancel()
			wantErr(t, <-failed, context.Canceled)
			close(gate)
			writers.Wait()
			if rs, err := s.Get(t.Context(), key("over"), key("n1023")); err != nil || rs[0] != nil || rs[1] == nil {
				t.Errorf("resources %v, error %v", rs, err)
			}
			mustClose(t, s)
		}},
		{"a condition that was judged by changes which the failed commit lost is no answer", func(t *testing.T) {
			s, f := faulty(t)
			gate := make(chan struct{})
			n := 0
			f.set(func(int) (before, after bool) {
				n++
				if n == 1 { // the two calls that come meanwhile share the second commit, which fails
					<-gate
				}
				return n == 2, false
			})
			var writers sync.WaitGroup
			writers.Go(func() { mustPut(t, s, "a") })
			synctest.Wait()
			for i, want := range []error{backend.ErrUnknown, backend.ErrUnavailable} {
				writers.Go(func() {
					b := batch(s, fmt.Sprint("create-", i), "b", "1")
					b.Actions[0].If.Presence = backend.Absent
					_, err := s.Apply(t.Context(), b)
					wantErr(t, err, want)
				})
				synctest.Wait()
			}
			close(gate)
			writers.Wait()
			if rs, err := s.Get(t.Context(), key("b")); err != nil || rs[0] != nil {
				t.Errorf("resources %v, error %v", rs, err)
			}
			mustClose(t, s)
		}},
		{"a watcher that reads the file hears of no change before its writer can, and of each once", func(t *testing.T) {
			gate, open := make(chan struct{}), false
			s := mustOpen(t, bolt.Config{Path: filepath.Join(t.TempDir(), "sluice.db")}.WithCommit(func(commit func() error) error {
				err := commit()
				if open {
					<-gate
				}
				return err
			}))
			begin, err := s.Position(t.Context())
			wantErr(t, err, nil)
			mustPut(t, s, "a")
			before := mustPut(t, s, "b").Position
			s.ForgetTail()
			open = true
			var writers sync.WaitGroup
			writers.Go(func() { mustPut(t, s, "c") })
			synctest.Wait() // c is in the file
			w, err := s.Watch(t.Context(), backend.Watch{From: begin})
			wantErr(t, err, nil)
			d, err := w.Next(t.Context())
			if err != nil || len(d.Events) != 2 || !d.CaughtUp || !d.Position.Equal(before) {
				t.Errorf("delivery %+v, error %v", d, err)
			}
			close(gate)
			writers.Wait()
			d, err = w.Next(t.Context())
			if err != nil || len(d.Events) != 1 || d.Events[0].RequestID != "put-c" {
				t.Errorf("delivery %+v, error %v", d, err)
			}
			mustClose(t, s)
		}},
		{"reads and watches go on during a commit", func(t *testing.T) {
			s, gate := gated(t)
			gate <- struct{}{}
			before := mustPut(t, s, "a").Position
			var writers sync.WaitGroup
			writers.Go(func() { mustPut(t, s, "b") })
			synctest.Wait()
			rs, err := s.Get(t.Context(), key("a"), key("b"))
			if err != nil || rs[0] == nil || rs[1] != nil {
				t.Errorf("resources %v, error %v", rs, err)
			}
			if p, err := s.Position(t.Context()); err != nil || !p.Equal(before) {
				t.Errorf("position %v, error %v", p.Shard(0), err)
			}
			gate <- struct{}{}
			writers.Wait()
			mustClose(t, s)
		}},
		{"closing waits for the commit under way and refuses the calls that wait", func(t *testing.T) {
			s, gate := gated(t)
			var writers sync.WaitGroup
			writers.Go(func() { mustPut(t, s, "a") })
			synctest.Wait()
			writers.Go(func() {
				_, err := s.Apply(t.Context(), batch(s, "x", "b", "1"))
				wantErr(t, err, backend.ErrClosed)
			})
			synctest.Wait()
			writers.Go(func() { mustClose(t, s) })
			synctest.Wait()
			gate <- struct{}{}
			writers.Wait()
		}},
	} {
		t.Run(test.says, func(t *testing.T) { synctest.Test(t, test.run) })
	}
}
