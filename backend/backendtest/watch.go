package backendtest

import (
	"context"
	"errors"
	"fmt"

	"github.com/sluicegw/sluice/backend"
)

func watchStatements() []statement {
	return []statement{
		{"a watch from now has caught up at once and delivers what follows", func(f *fixture) {
			f.start()
			f.must(create(key("before"), "1"))
			w := f.watch(backend.Position{})
			d := f.next(w)
			equal(f, d, backend.Delivery{CaughtUp: true, Position: f.position()})
			f.must(create(key("after"), "1"))
			d = f.next(w)
			equal(f, d.CaughtUp, false)
			equal(f, summary(d.Events), []string{"ADDED after"})
			equal(f, d.Position, f.position())
		}},
		{"the changes of a batch come in the order of its actions, under one request id", func(f *fixture) {
			f.start()
			f.must(create(key("x"), "1"))
			from := f.position()
			f.must(
				put(key("b"), "1"), check(key("y"), backend.Condition{Presence: backend.Absent}), put(key("a"), "1"),
				remove(key("x")),
			)
			events := f.replay(from)
			equal(f, summary(events), []string{"ADDED b", "ADDED a", "DELETED x"})
			equal(f, events[0].RequestID == events[2].RequestID, true)
		}},
		{"the caught-up mark comes exactly once, with the head", func(f *fixture) {
			f.start()
			from := f.position()
			for i := range 1000 {
				f.must(put(key(fmt.Sprint("n", i%10)), "1"))
			}
			w := f.watch(from)
			marks, n := 0, 0
			for n < 1500 {
				d := f.next(w)
				n += len(d.Events)
				if d.CaughtUp {
					marks++
					equal(f, n, 1000)
					equal(f, d.Position, f.position())
				}
				if n >= 1000 {
					f.must(put(key("more"), "1"))
				}
			}
			equal(f, marks, 1)
		}},
		{"several watchers see every change exactly once", func(f *fixture) {
			f.start()
			var ws []backend.Watcher
			for range 5 {
				ws = append(ws, f.watch(backend.Position{}))
			}
			for i := range 300 {
				f.must(put(key(fmt.Sprint("n", i%7)), "1"))
			}
			for _, w := range ws {
				seq := uint64(0)
				for seq < 300 {
					for _, e := range f.next(w).Events {
						seq++
						equal(f, e.Revision.Seq, seq)
					}
				}
			}
		}},
		{"a delivery holds a bounded number of bytes, and at least one change", func(f *fixture) {
			f.start()
			from := f.position()
			large := backend.MaxResourceBytes
			for range 3 {
				for i := range 8 {
					f.must(sized(key(fmt.Sprint("n", i)), large))
				}
			}
			w := f.watch(from)
			for seen := 0; seen < 24; {
				d := f.next(w)
				size := 0
				for i := range d.Events {
					size += d.Events[i].Size()
				}
				if len(d.Events) == 0 || len(d.Events) > 1 && size > backend.MaxDeliveryBytes {
					f.Fatalf("a delivery of %d changes of %d bytes", len(d.Events), size)
				}
				seen += len(d.Events)
				equal(f, f.own(d.Position), d.Events[len(d.Events)-1].Revision)
			}
		}},
		{"a waiting Next ends with its context, and the watch goes on", func(f *fixture) {
			f.start()
			w := f.watch(backend.Position{})
			f.next(w)
			ctx, cancel := context.WithCancel(f.ctx())
			failed := make(chan error, 1)
			go func() {
				_, err := w.Next(ctx)
				failed <- err
			}()
			cancel()
			f.wantErr(<-failed, context.Canceled)
			_, err := w.Next(ctx)
			f.wantErr(err, context.Canceled)
			f.must(create(key("a"), "1"))
			equal(f, summary(f.next(w).Events), []string{"ADDED a"})
		}},
		{"Close ends a waiting Next with ErrClosed, may be called twice and by anyone", func(f *fixture) {
			f.start()
			w := f.watch(backend.Position{})
			f.next(w)
			failed := make(chan error, 1)
			go func() {
				_, err := w.Next(f.ctx())
				failed <- err
			}()
			w.Close()
			w.Close()
			f.wantErr(<-failed, backend.ErrClosed)
			_, err := w.Next(f.ctx())
			f.wantErr(err, backend.ErrClosed)
		}},
		{"a watcher that falls behind is closed with the position that resumes without gap or repeat", func(f *fixture) {
			f.start()
			w, err := f.Watch(f.ctx(), backend.Watch{MaxLag: 10})
			f.wantErr(err, nil)
			defer w.Close()
			f.next(w)
			f.must(put(key("a"), "1"))
			seen := uint64(len(f.next(w).Events))
			f.must(puts(10)...)
			seen += uint64(len(f.next(w).Events))
			equal(f, seen, 11)
			f.must(puts(11)...)
			_, err = w.Next(f.ctx())
			f.wantErr(err, backend.ErrLagged)
			var lagged *backend.LaggedError
			if !errors.As(err, &lagged) {
				f.Fatalf("error %v is no LaggedError", err)
			}
			_, again := w.Next(f.ctx())
			f.wantErr(again, backend.ErrLagged)
			events := f.replay(lagged.Position)
			equal(f, len(events), 11)
			equal(f, events[0].Revision.Seq, seen+1)
		}},
		{"a watcher that has not caught up may be any number of changes behind", func(f *fixture) {
			f.start()
			from := f.position()
			for range 20 {
				f.must(puts(50)...)
			}
			w, err := f.Watch(f.ctx(), backend.Watch{From: from, MaxLag: 1})
			f.wantErr(err, nil)
			defer w.Close()
			n := 0
			for n < 1000 {
				n += len(f.next(w).Events)
			}
		}},
		{"a slow watcher stops neither writers nor other watchers", func(f *fixture) {
			f.start()
			slow, quick := f.watch(backend.Position{}), f.watch(backend.Position{})
			f.next(slow)
			f.next(quick)
			for range backend.DefaultMaxLag/50 + 1 {
				f.must(puts(50)...)
				for n := 0; n < 50; {
					n += len(f.next(quick).Events)
				}
			}
			_, err := slow.Next(f.ctx())
			f.wantErr(err, backend.ErrLagged)
		}},
	}
}
