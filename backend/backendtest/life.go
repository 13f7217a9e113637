package backendtest

import (
	"context"
	"time"

	"github.com/sluicegw/sluice/backend"
)

func lifeStatements() []statement {
	return []statement{
		{"data outlives a reopening", func(f *fixture) {
			f.start()
			f.must(expiring(deleting(create(key("a"), "1")), f.clock.Now().Add(time.Hour)), create(key("b"), "2"))
			f.must(remove(key("b")))
			before := f.list(backend.Range{Kind: "Net", Deleting: true})
			f.stop()
			f.reopen()
			equal(f, f.list(backend.Range{Kind: "Net", Deleting: true}), before)
			equal(f, f.list(backend.Range{Kind: "Net"}), before)
			equal(f, f.get(key("b")), nil)
		}},
		{"a closed store answers every call with ErrClosed, and closes again in peace", func(f *fixture) {
			f.start()
			f.must(create(key("a"), "1"))
			s, b := f.Store, f.batch(put(key("a"), "2"))
			f.stop()
			_, err := s.Apply(f.ctx(), b)
			f.wantErr(err, backend.ErrClosed)
			_, err = s.Get(f.ctx(), key("a"))
			f.wantErr(err, backend.ErrClosed)
			_, err = s.Range(f.ctx(), backend.Range{Kind: "Net", Limit: 1})
			f.wantErr(err, backend.ErrClosed)
			_, err = s.Watch(f.ctx(), backend.Watch{})
			f.wantErr(err, backend.ErrClosed)
			_, err = s.Position(f.ctx())
			f.wantErr(err, backend.ErrClosed)
			_, err = s.Purge(f.ctx())
			f.wantErr(err, backend.ErrClosed)
			f.wantErr(s.Close(), nil)
			f.wantErr(s.Run(f.ctx()), nil)
			_, err = f.in.Handle(s).Get(f.ctx(), key("a"))
			f.wantErr(err, backend.ErrClosed)
		}},
		{"closing a store ends its waiting watchers with ErrClosed", func(f *fixture) {
			f.start()
			const n = 3
			failed := make(chan error, n)
			for range n {
				w := f.watch(backend.Position{})
				f.next(w)
				go func() {
					_, err := w.Next(context.Background())
					failed <- err
				}()
			}
			f.stop()
			for range n {
				f.wantErr(<-failed, backend.ErrClosed)
			}
		}},
		{"two handles share data, log and watchers", func(f *fixture) {
			f.start()
			other := f.in.Handle(f.Store)
			w, err := other.Watch(f.ctx(), backend.Watch{})
			f.wantErr(err, nil)
			defer w.Close()
			f.next(w)
			f.must(create(key("a"), "1"))
			equal(f, summary(f.next(w).Events), []string{"ADDED a"})
			rs, err := other.Get(f.ctx(), key("a"))
			f.wantErr(err, nil)
			equal(f, rs[0], f.get(key("a")))
			_, err = other.Apply(f.ctx(), f.batch(create(key("a"), "2")))
			f.wantErr(err, backend.ErrExists)
			f.wantErr(other.Close(), nil)
		}},
		{"closing one handle ends only its own watchers", func(f *fixture) {
			f.start()
			other := f.in.Handle(f.Store)
			theirs, err := other.Watch(f.ctx(), backend.Watch{})
			f.wantErr(err, nil)
			ours := f.watch(backend.Position{})
			f.next(ours)
			f.wantErr(other.Close(), nil)
			_, err = theirs.Next(f.ctx())
			f.wantErr(err, backend.ErrClosed)
			_, err = other.Get(f.ctx(), key("a"))
			f.wantErr(err, backend.ErrClosed)
			f.must(create(key("a"), "1"))
			equal(f, summary(f.next(ours).Events), []string{"ADDED a"})
		}},
		{"data stays open until the last handle is closed", func(f *fixture) {
			f.start()
			other := f.in.Handle(f.Store)
			f.wantErr(f.Close(), nil)
			f.Store = other
			f.must(create(key("a"), "1"))
			equal(f, string(f.get(key("a")).Body), "j1")
		}},
		{"an Apply whose context has ended is certainly not applied", func(f *fixture) {
			f.start()
			ctx, cancel := context.WithCancel(f.ctx())
			cancel()
			_, err := f.Apply(ctx, f.batch(create(key("a"), "1")))
			f.wantErr(err, context.Canceled)
			equal(f, f.get(key("a")), nil)
			equal(f, f.own(f.position()).Seq, 0)
		}},
	}
}
