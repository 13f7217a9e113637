package backendtest

import (
	"fmt"
	"strings"
	"time"

	"github.com/sluicegw/sluice/backend"
)

func logStatements() []statement {
	return []statement{
		{"the log keeps the newest entries, and what is trimmed has expired", func(f *fixture) {
			f.start(func(o *Options) { o.LogEntries = 20 })
			first := f.position()
			for i := range 50 {
				f.must(put(key(fmt.Sprint("n", i)), "1"))
			}
			epoch := f.own(first).Epoch
			f.expired(first)
			for seq := range uint64(30) {
				f.expired(f.at(backend.Revision{Epoch: epoch, Seq: seq}))
			}
			// The change at 30 is gone, but nothing after it is missing.
			for seq := uint64(30); seq <= 50; seq++ {
				events := f.replay(f.at(backend.Revision{Epoch: epoch, Seq: seq}))
				equal(f, len(events), int(50-seq))
			}
			equal(f, f.list(backend.Range{Kind: "Net", Count: true}).Count, 50)
		}},
		{"the log is bounded by bytes, and one entry over the bound stays", func(f *fixture) {
			f.start(func(o *Options) { o.LogBytes = 64 << 10 })
			from := f.position()
			for range 10 {
				f.must(put(key("a"), strings.Repeat("x", 30_000)))
			}
			epoch := f.own(from).Epoch
			f.expired(f.at(backend.Revision{Epoch: epoch, Seq: 7}))
			equal(f, len(f.replay(f.at(backend.Revision{Epoch: epoch, Seq: 8}))), 2)
			f.must(put(key("a"), strings.Repeat("x", 100_000)))
			equal(f, len(f.replay(f.at(backend.Revision{Epoch: epoch, Seq: 10}))), 1)
			f.expired(f.at(backend.Revision{Epoch: epoch, Seq: 9}))
		}},
		{"the log is bounded by age, by a purge and by a write, but for its last entry", func(f *fixture) {
			f.start(func(o *Options) { o.LogAge = time.Minute })
			from := f.position()
			f.must(puts(5)...)
			f.clock.Advance(time.Minute - time.Second)
			mid := f.position()
			f.must(puts(2)...)
			equal(f, len(f.replay(from)), 7)
			f.clock.Advance(2 * time.Second)
			equal(f, f.purge(), 0)
			f.expired(from)
			equal(f, len(f.replay(mid)), 2)
			f.clock.Advance(time.Hour)
			f.must(put(key("a"), "1"))
			f.expired(mid)
			equal(f, len(f.replay(f.at(backend.Revision{Epoch: f.own(mid).Epoch, Seq: 7}))), 1)
			f.clock.Advance(time.Hour)
			f.purge()
			equal(f, len(f.replay(f.at(backend.Revision{Epoch: f.own(mid).Epoch, Seq: 7}))), 1)
			equal(f, len(f.replay(f.position())), 0)
		}},
		{"a long backlog is trimmed in bounded steps until it fits", func(f *fixture) {
			f.start(func(o *Options) { o.LogAge = time.Minute })
			from := f.position()
			for range 20 {
				f.must(puts(50)...)
			}
			f.clock.Advance(time.Hour)
			for range 1000/64 + 1 {
				f.purge()
			}
			f.expired(from)
			head := f.own(f.position())
			equal(f, len(f.replay(f.at(backend.Revision{Epoch: head.Epoch, Seq: head.Seq - 1}))), 1)
			head.Seq -= 2
			f.expired(f.at(head))
		}},
		{"a watcher that is overtaken by the trimming expires", func(f *fixture) {
			f.start(func(o *Options) { o.LogEntries = 20 })
			w := f.watch(backend.Position{})
			f.next(w)
			f.must(puts(5)...)
			equal(f, len(f.next(w).Events), 5)
			f.must(puts(60)...)
			_, err := w.Next(f.ctx())
			f.wantErr(err, backend.ErrPositionExpired)
			_, err = w.Next(f.ctx())
			f.wantErr(err, backend.ErrPositionExpired)
		}},
		{"trimming and epochs survive a reopening", func(f *fixture) {
			f.start(func(o *Options) { o.LogEntries = 20 })
			first := f.position()
			f.must(puts(15)...)
			second := f.position()
			f.stop()
			f.reopen()
			f.must(puts(10)...)
			third := f.position()
			f.stop()
			f.reopen()
			f.expired(first)
			equal(f, len(f.replay(second)), 10)
			f.must(puts(12)...)
			f.expired(second)
			equal(f, len(f.replay(third)), 12)
			// The trim mark lies in the epoch of third: an older position stays expired.
			f.must(puts(18)...)
			f.expired(third)
			f.stop()
			f.reopen()
			f.expired(second)
			equal(f, len(f.replay(f.position())), 0)
		}},
		{"a position at the end of an epoch whose entries are all trimmed resumes with the next", func(f *fixture) {
			f.start(func(o *Options) { o.LogEntries = 10 })
			f.must(puts(5)...)
			end := f.position()
			f.stop()
			f.reopen()
			f.must(puts(10)...)
			equal(f, len(f.replay(end)), 10)
			f.must(puts(1)...)
			f.expired(end)
		}},
	}
}
