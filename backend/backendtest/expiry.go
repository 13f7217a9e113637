package backendtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegw/sluice/backend"
)

func expiryStatements() []statement {
	return []statement{
		{"what is expired is invisible at once to every read", func(f *fixture) {
			f.start()
			f.must(expiring(create(key("a"), "1"), f.clock.Now().Add(time.Second)), create(key("b"), "1"))
			equal(f, f.list(backend.Range{Kind: "Net", Count: true}).Count, 2)
			f.clock.Advance(time.Second)
			equal(f, f.get(key("a")), nil)
			equal(f, names(f.list(backend.Range{Kind: "Net"}).Resources), []string{"b"})
			equal(f, names(f.list(backend.Range{Kind: "Net", Reverse: true}).Resources), []string{"b"})
			equal(f, f.list(backend.Range{Kind: "Net", Count: true}).Count, 1)
		}},
		{"expiry is to the millisecond: visible just before, gone at it", func(f *fixture) {
			f.start()
			at := f.clock.Now().Truncate(time.Millisecond).Add(time.Second)
			f.must(expiring(create(key("a"), "1"), at.Add(999*time.Microsecond)))
			f.clock.Advance(at.Sub(f.clock.Now()) - 1)
			equal(f, f.get(key("a")).ExpiresAt, at)
			equal(f, f.purge(), 0)
			f.clock.Advance(1)
			equal(f, f.get(key("a")), nil)
			equal(f, f.purge(), 1)
		}},
		{"what is expired is absent to every condition", func(f *fixture) {
			f.start()
			rev := f.must(expiring(create(key("a"), "1"), f.clock.Now().Add(time.Second))).Revisions[0]
			f.clock.Advance(time.Second)
			for _, c := range []backend.Condition{
				{Presence: backend.Present}, {Revision: rev}, {UID: "uid-a"}, {NotDeleting: true}, {Deleting: true},
			} {
				ce := f.refuse(0, backend.ErrNotFound, with(put(key("a"), "2"), c))
				equal(f, ce.Current, nil)
				f.refuse(0, backend.ErrNotFound, with(remove(key("a")), c))
			}
			f.refuse(0, backend.ErrNotFound, remove(key("a")))
			res := f.must(check(key("a"), backend.Condition{Presence: backend.Absent}), put(key("b"), "1"))
			equal(f, res.Resources[0], nil)
		}},
		{"a put over what is expired logs DELETED, then ADDED, in one step", func(f *fixture) {
			for _, again := range []backend.Action{create(key("a"), "2"), put(key("a"), "2")} {
				f.start()
				old := f.must(expiring(
					refs(create(key("a"), "1"), bound("t")), f.clock.Now().Add(time.Second),
				)).Resources[0]
				from := f.position()
				f.clock.Advance(time.Second)
				again.Put.UID = "second"
				b := f.batch(refs(again, bound("u")))
				b.Actor = "someone"
				res, err := f.Apply(f.ctx(), b)
				f.wantErr(err, nil)
				events := f.replay(from)
				equal(f, summary(events), []string{"DELETED a", "ADDED a"})
				equal(f, events[0].Resource, old)
				equal(f, events[0].RequestID, events[1].RequestID)
				equal(f, events[1].Resource, res.Resources[0])
				equal(f, events[1].Revision.Seq, events[0].Revision.Seq+1)
				for _, e := range events {
					equal(f, e.Actor, "someone")
					equal(f, e.Before, nil)
					equal(f, e.Change, nil)
				}
				equal(f, res.Resources[0].UID, "second")
				equal(f, f.referrers(key("t"), false), []string{})
				equal(f, f.referrers(key("u"), true), []string{"a"})
				equal(f, f.purge(), 0)
				f.stop()
			}
		}},
		{"a purge removes what is expired with one event each, in the order of expiry", func(f *fixture) {
			f.start()
			for i := range 5 {
				f.must(expiring(
					refs(create(key(fmt.Sprint("n", i)), "1"), bound("t")),
					f.clock.Now().Add(time.Duration(5-i)*time.Second),
				))
			}
			f.must(create(key("stays"), "1"))
			from := f.position()
			f.clock.Advance(3 * time.Second)
			equal(f, f.purge(), 3)
			equal(f, f.purge(), 0)
			events := f.replay(from)
			equal(f, summary(events), []string{"DELETED n4", "DELETED n3", "DELETED n2"})
			for i, e := range events {
				equal(f, e.RequestID, "")
				equal(f, e.Actor, "")
				equal(f, e.Before, nil)
				equal(f, e.Change, nil)
				equal(f, e.Revision.Seq, f.own(from).Seq+uint64(i)+1)
				equal(f, e.Time, f.clock.Now().Truncate(time.Millisecond))
				equal(f, string(e.Resource.Body), "j1")
			}
			equal(f, f.referrers(key("t"), true), []string{"n0", "n1"})
		}},
		{"rounds of a purge are bounded and together complete", func(f *fixture) {
			f.start()
			const n = 600
			for i := 0; i < n; i += 50 {
				actions := make([]backend.Action, 50)
				for j := range actions {
					actions[j] = expiring(create(key(fmt.Sprintf("n%04d", i+j)), "1"), f.clock.Now().Add(time.Second))
				}
				f.must(actions...)
			}
			f.clock.Advance(time.Second)
			total, rounds := 0, 0
			for k := f.purge(); k > 0; k = f.purge() {
				total += k
				rounds++
			}
			equal(f, total, n)
			equal(f, rounds > 1, true)
		}},
		{"a later expiry keeps the resource, an earlier one takes it", func(f *fixture) {
			f.start()
			now := f.clock.Now()
			f.must(
				expiring(create(key("longer"), "1"), now.Add(time.Second)),
				expiring(create(key("shorter"), "1"), now.Add(time.Hour)),
			)
			f.must(
				expiring(put(key("longer"), "2"), now.Add(time.Hour)),
				expiring(put(key("shorter"), "2"), now.Add(time.Second)),
			)
			f.clock.Advance(time.Second)
			equal(f, f.purge(), 1)
			equal(f, names(f.list(backend.Range{Kind: "Net"}).Resources), []string{"longer"})
		}},
		{"a deleted resource is not purged", func(f *fixture) {
			f.start()
			f.must(expiring(create(key("a"), "1"), f.clock.Now().Add(time.Second)))
			f.must(remove(key("a")))
			f.clock.Advance(time.Second)
			equal(f, f.purge(), 0)
		}},
		{"a put that is expired already is stored, invisible and purged", func(f *fixture) {
			f.start()
			f.must(expiring(create(key("a"), "1"), f.clock.Now().Add(-time.Hour)))
			equal(f, f.get(key("a")), nil)
			equal(f, f.purge(), 1)
			f.must(expiring(create(key("a"), "1"), time.Unix(0, 0)))
			equal(f, f.get(key("a")), nil)
			equal(f, f.purge(), 1)
		}},
		{"what is expired does not eat the limit of a page", func(f *fixture) {
			f.start()
			var actions []backend.Action
			for i := range 20 {
				a := create(key(fmt.Sprintf("n%02d", i)), "1")
				if i%2 == 0 {
					a = expiring(a, f.clock.Now().Add(time.Second))
				}
				actions = append(actions, a)
			}
			f.must(actions...)
			f.clock.Advance(time.Second)
			page := f.list(backend.Range{Kind: "Net", Limit: 10})
			equal(f, len(page.Resources), 10)
			equal(f, page.More, false)
			page = f.list(backend.Range{Kind: "Net", Limit: 9, Reverse: true})
			equal(f, len(page.Resources), 9)
			equal(f, page.More, true)
		}},
		{"expiry outlives a reopening", func(f *fixture) {
			f.start()
			f.must(expiring(create(key("a"), "1"), f.clock.Now().Add(time.Second)))
			f.stop()
			f.clock.Advance(time.Second)
			f.reopen()
			equal(f, f.get(key("a")), nil)
			equal(f, f.purge(), 1)
		}},
	}
}

// RunIdle tests, with the fake clock of package synctest, that Run purges and
// trims a store that nobody uses. It is only for drivers that use no other
// process, because another process would follow the real clock.
func RunIdle(t *testing.T, open Opener) {
	t.Run("an idle store purges and trims in Run", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			in := open(
				t,
				Options{
					Clock:         time.Now,
					Rand:          rand.New(rand.NewPCG(1, 2)),
					LogAge:        time.Hour,
					PurgeInterval: time.Second,
				},
			)
			s, err := in.Open()
			if err != nil {
				t.Fatal(err)
			}
			defer func() { equal(t, s.Close(), nil) }()
			ctx, cancel := context.WithCancel(t.Context())
			ran := make(chan error, 1)
			go func() { ran <- s.Run(ctx) }()
			begin, err := s.Position(ctx)
			equal(t, err, nil)
			actions := make([]backend.Action, 40)
			for i := range actions {
				actions[i] = expiring(create(key(fmt.Sprintf("n%02d", i)), "1"), time.Now().Add(10*time.Second))
			}
			w, err := s.Watch(ctx, backend.Watch{})
			equal(t, err, nil)
			defer w.Close()
			if d, err := w.Next(ctx); err != nil || !d.CaughtUp {
				t.Fatalf("delivery %+v, error %v", d, err)
			}
			if _, err := s.Apply(
				ctx, backend.Batch{RequestID: "r", Deadline: time.Now().Add(time.Second), Actions: actions},
			); err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			seen := map[backend.EventType]int{}
			for seen[backend.Deleted] < len(actions) {
				d, err := w.Next(ctx)
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range d.Events {
					seen[e.Type]++
				}
			}
			if took := time.Since(start); took < 10*time.Second || took > 11*time.Second {
				t.Errorf("purged after %v", took)
			}
			<-time.After(2 * time.Hour)
			if _, err := s.Watch(ctx, backend.Watch{From: begin}); err == nil {
				t.Error("the log was not trimmed by age")
			}
			cancel()
			if err := <-ran; err != nil {
				t.Errorf("run: %v", err)
			}
		})
	})
	t.Run("Run ends when the store is closed", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s, err := open(t, Options{Clock: time.Now}).Open()
			if err != nil {
				t.Fatal(err)
			}
			ran := make(chan error, 1)
			go func() { ran <- s.Run(t.Context()) }()
			synctest.Wait()
			equal(t, s.Close(), nil)
			equal(t, <-ran, nil)
		})
	})
}
