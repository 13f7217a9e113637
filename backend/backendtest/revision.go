package backendtest

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/sluicegw/sluice/backend"
)

func revisionStatements() []statement {
	return []statement{
		{"revisions are dense from 1 and count puts and deletes alike", func(f *fixture) {
			f.start()
			epoch := f.own(f.position()).Epoch
			equal(f, f.own(f.position()).Seq, 0)
			seq := uint64(0)
			for i := range 20 {
				k := key(fmt.Sprint("n", i%3))
				res := f.must(put(k, "1"), put(key("x"), "1"))
				for _, r := range res.Revisions {
					seq++
					equal(f, r, backend.Revision{Epoch: epoch, Seq: seq})
				}
				seq++
				equal(f, f.must(remove(k)).Revisions[0], backend.Revision{Epoch: epoch, Seq: seq})
				f.refuse(0, backend.ErrNotFound, remove(k))
			}
			equal(f, f.own(f.position()), backend.Revision{Epoch: epoch, Seq: seq})
		}},
		{"the same bytes again get a new revision", func(f *fixture) {
			f.start()
			first := f.must(put(key("a"), "1")).Revisions[0]
			second := f.must(put(key("a"), "1")).Revisions[0]
			equal(f, second.Compare(first), 1)
			equal(f, f.get(key("a")).Revision, second)
		}},
		{"specRevision is the revision of the caller's last put", func(f *fixture) {
			f.start()
			engine := put(key("a"), "engine")
			engine.Put.Caller = false
			first := f.must(create(key("a"), "1")).Revisions[0]
			status := f.must(engine).Revisions[0]
			got := f.get(key("a"))
			equal(f, got.SpecRevision, first)
			equal(f, got.Revision, status)
			f.must(engine)
			equal(f, f.get(key("a")).SpecRevision, first)
			second := f.must(put(key("a"), "2")).Revisions[0]
			equal(f, f.get(key("a")).SpecRevision, second)
		}},
		{"a creation sets specRevision, whoever makes it", func(f *fixture) {
			f.start()
			engine := put(key("a"), "engine")
			engine.Put.Caller = false
			rev := f.must(engine).Revisions[0]
			equal(f, f.get(key("a")).SpecRevision, rev)
		}},
		{"a re-created resource begins anew", func(f *fixture) {
			f.start()
			f.must(create(key("a"), "1"))
			f.must(remove(key("a")))
			f.clock.Advance(time.Second)
			again := create(key("a"), "1")
			again.Put.UID, again.Put.Caller = "second", false
			rev := f.must(again).Revisions[0]
			got := f.get(key("a"))
			equal(f, got.UID, "second")
			equal(f, got.SpecRevision, rev)
			equal(f, got.CreatedAt, f.clock.Now().Truncate(time.Millisecond))
		}},
		{"each opening begins a later epoch, and revisions stay monotonic", func(f *fixture) {
			f.start()
			last := f.must(put(key("a"), "1")).Revisions[0]
			for range 3 {
				f.stop()
				f.reopen()
				equal(f, f.own(f.position()).Seq, 0)
				rev := f.must(put(key("a"), "1")).Revisions[0]
				equal(f, rev.Compare(last), 1)
				equal(f, rev.Epoch > last.Epoch, true)
				equal(f, rev.Seq, 1)
				last = rev
			}
		}},
		{"an epoch is later than the one before even if the clock went back", func(f *fixture) {
			f.start()
			before := f.own(f.position()).Epoch
			f.stop()
			f.clock.Advance(-1000 * time.Hour)
			f.reopen()
			after := f.own(f.position()).Epoch
			equal(f, after > before && after <= backend.MaxEpoch, true)
		}},
		{"an epoch tells the second it was begun in", func(f *fixture) {
			f.start()
			equal(f, f.own(f.position()).Epoch>>20-uint64(f.clock.Now().Unix()) <= 1, true)
		}},
		{"two stores opened in the same second have different epochs", func(f *fixture) {
			f.start()
			other := &fixture{T: f.T, open: f.open, clock: f.clock}
			other.start(func(o *Options) { o.Rand = rand.New(rand.NewPCG(3, 4)) })
			equal(f, f.own(f.position()).Epoch != other.own(other.position()).Epoch, true)
		}},
		{"a conditional put survives an opening, its revision being of an older epoch", func(f *fixture) {
			f.start()
			rev := f.must(create(key("a"), "1")).Revisions[0]
			f.stop()
			f.reopen()
			f.must(with(put(key("a"), "2"), backend.Condition{Revision: rev}))
			f.refuse(0, backend.ErrConflict, with(put(key("a"), "3"), backend.Condition{Revision: rev}))
		}},
	}
}
