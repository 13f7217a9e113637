package backendtest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/sluicegw/sluice/backend"
)

// history makes n changes of all types. Some are in one batch, and some
// resources expire and are purged.
func history(f *fixture, n int) {
	f.Helper()
	for i := range n {
		k := key(fmt.Sprint("n", i%5))
		switch i % 6 {
		case 4:
			f.must(expiring(put(k, fmt.Sprint(i)), f.clock.Now().Add(time.Second)), put(key("batch"), "1"))
			f.clock.Advance(time.Second)
			f.purge()
		case 5:
			f.must(put(k, "1"))
			f.must(remove(k))
		default:
			f.must(refs(put(k, fmt.Sprint(i)), bound(fmt.Sprint("t", i%2))))
		}
	}
}

func resumeStatements() []statement {
	return []statement{
		{"a watch resumes from every position, also within a batch", func(f *fixture) {
			f.start()
			from := f.position()
			history(f, 60)
			all := f.replay(from)
			equal(f, len(all), int(f.own(f.position()).Seq))
			for i, e := range all {
				rest := f.replay(e.Position)
				if len(rest) != len(all)-i-1 {
					f.Fatalf("%d changes after number %d, want %d", len(rest), i, len(all)-i-1)
				}
				if len(rest) > 0 {
					equal(f, rest[0], all[i+1])
				}
			}
		}},
		{"a watch resumes from the position of every result and every delivery", func(f *fixture) {
			f.start()
			w := f.watch(backend.Position{})
			f.next(w)
			for i := range 20 {
				res := f.must(put(key("a"), "1"), put(key("b"), "1"))
				d := f.next(w)
				equal(f, d.Position, f.after(res))
				equal(f, len(f.replay(d.Position)), 0)
				if i == 10 {
					w.Close()
					w = f.watch(d.Position)
					equal(f, f.next(w), backend.Delivery{CaughtUp: true, Position: d.Position})
				}
			}
		}},
		{"positions survive their wire form", func(f *fixture) {
			f.start()
			from := f.position()
			f.must(puts(3)...)
			parsed, err := backend.ParsePosition(from.String())
			f.wantErr(err, nil)
			equal(f, len(f.replay(parsed)), 3)
		}},
		{"a watch resumes after reopenings from every position, through empty epochs too", func(f *fixture) {
			f.start()
			positions := []backend.Position{f.position()}
			for round := range 5 {
				if round != 2 {
					history(f, 6)
				}
				for _, e := range f.replay(positions[len(positions)-1]) {
					positions = append(positions, e.Position)
				}
				positions = append(positions, f.position())
				f.stop()
				f.reopen()
				positions = append(positions, f.position())
			}
			all := f.replay(positions[0])
			for _, p := range positions {
				rest := f.replay(p)
				for i, e := range rest {
					want := all[len(all)-len(rest)+i]
					equal(f, f.own(e.Position), f.own(want.Position))
					want.Position = e.Position // the revisions of other shards may differ
					equal(f, e, want)
				}
				if len(rest) < len(all) {
					equal(f, all[len(all)-len(rest)-1].Revision.Compare(f.own(p)) <= 0, true)
				}
				if len(rest) > 0 {
					equal(f, rest[0].Revision.Compare(f.own(p)), 1)
				}
			}
		}},
		{"a position from the future has expired", func(f *fixture) {
			f.start()
			f.must(puts(3)...)
			head := f.own(f.position())
			for _, r := range []backend.Revision{
				{Epoch: head.Epoch, Seq: head.Seq + 1}, {Epoch: head.Epoch + 1, Seq: 1}, {Epoch: head.Epoch + 1},
				{Epoch: backend.MaxEpoch, Seq: 1},
			} {
				f.expired(f.at(r))
			}
		}},
		{"a position of an unknown epoch has expired", func(f *fixture) {
			f.start()
			f.must(puts(3)...)
			head := f.own(f.position())
			for _, r := range []backend.Revision{
				{Epoch: head.Epoch - 1, Seq: 1}, {Epoch: head.Epoch - 1}, {Epoch: 1, Seq: 1}, {Seq: 1}, {},
			} {
				f.expired(f.at(r))
			}
		}},
		{"a position past the last change of an older epoch is of a lost future and has expired", func(f *fixture) {
			f.start()
			f.must(puts(3)...)
			lost := f.own(f.position())
			f.stop()
			f.reopen()
			f.must(puts(10)...)
			equal(f, len(f.replay(f.at(lost))), 10)
			lost.Seq++
			f.expired(f.at(lost))
		}},
		{"a position of another store has expired", func(f *fixture) {
			f.start()
			other := &fixture{T: f.T, open: f.open, clock: f.clock}
			other.start(func(o *Options) { o.Rand = rand.New(rand.NewPCG(3, 4)) })
			for _, s := range []*fixture{f, other} {
				s.must(puts(3)...)
			}
			f.expired(other.position())
			other.expired(f.position())
		}},
		{"a position of another number of shards has expired", func(f *fixture) {
			f.start()
			head := f.own(f.position())
			f.expired(backend.NewPosition(slices.Repeat([]backend.Revision{head}, f.position().Shards()+1)...))
		}},
	}
}

// expired expects that Watch, or the first Next, fails with ErrPositionExpired.
func (f *fixture) expired(p backend.Position) {
	f.Helper()
	w, err := f.Watch(f.ctx(), backend.Watch{From: p})
	if err == nil {
		defer w.Close()
		_, err = w.Next(f.ctx())
	}
	f.wantErr(err, backend.ErrPositionExpired)
}
