package backendtest

import (
	"fmt"
	"time"

	"github.com/sluicegw/sluice/backend"
)

// lease returns the key of an internal record.
func lease(name string) backend.Key {
	return backend.Key{Kind: "_lease", Namespace: "default", Name: name}
}

func internalStatements() []statement {
	return []statement{
		{"signs of life leave the log and every position as they are", func(f *fixture) {
			f.start(func(o *Options) { o.LogEntries, o.LogAge = 20, time.Hour })
			before := f.position()
			f.must(create(key("a"), "1"))
			w := f.watch(backend.Position{})
			at := f.next(w).Position
			equal(f, at, f.position())
			for i := range 60 {
				f.clock.Advance(time.Minute)
				f.must(put(lease("l"), fmt.Sprint(i)))
			}
			f.must(remove(lease("l")))
			f.purge()
			equal(f, f.position(), at)
			equal(f, len(f.replay(at)), 0)
			equal(f, summary(f.replay(before)), []string{"ADDED a"})
			f.must(create(key("b"), "1"))
			d := f.next(w)
			equal(f, summary(d.Events), []string{"ADDED b"})
			equal(f, d.Position, f.position())
		}},
		{"a batch of internal and other changes delivers the others, without a hole", func(f *fixture) {
			f.start()
			from := f.position()
			res := f.must(put(lease("1"), "1"), create(key("a"), "1"), put(lease("2"), "2"), create(key("b"), "1"))
			events := f.replay(from)
			equal(f, summary(events), []string{"ADDED a", "ADDED b"})
			equal(f, events[1].Revision.Seq, events[0].Revision.Seq+1)
			equal(f, f.own(f.after(res)), events[1].Revision)
			equal(
				f, []backend.Revision{res.Revisions[1], res.Revisions[3]},
				[]backend.Revision{events[0].Revision, events[1].Revision},
			)
			for i, name := range []string{"1", "2"} {
				equal(f, f.get(lease(name)), res.Resources[2*i])
				equal(f, f.get(lease(name)).Revision, res.Revisions[2*i])
			}
		}},
		{"each change of an internal record has another revision, also of one that is made anew", func(f *fixture) {
			f.start()
			seen := map[backend.Revision]bool{}
			note := func(res backend.Result) {
				f.Helper()
				for _, r := range res.Revisions {
					if r.IsZero() || seen[r] {
						f.Errorf("revision %s is none or comes again", r)
					}
					seen[r] = true
				}
			}
			for range 3 {
				note(f.must(create(lease("l"), "1"), create(lease("m"), "1")))
				first := f.get(lease("l")).Revision
				note(f.must(with(put(lease("l"), "2"), backend.Condition{Revision: first})))
				f.refuse(0, backend.ErrConflict, with(put(lease("l"), "3"), backend.Condition{Revision: first}))
				note(f.must(remove(lease("l")), remove(lease("m"))))
				f.stop()
				f.reopen()
			}
		}},
		{"an internal record expires without a word", func(f *fixture) {
			f.start()
			from := f.position()
			at := f.clock.Now().Add(time.Second)
			f.must(
				expiring(create(lease("purged"), "1"), at), expiring(create(lease("again"), "1"), at),
				expiring(create(key("told"), "1"), at),
			)
			f.clock.Advance(time.Second)
			f.must(create(lease("again"), "2"))
			equal(f, f.purge(), 2)
			equal(f, f.get(lease("purged")), nil)
			equal(f, string(f.get(lease("again")).Body), "j2")
			equal(f, summary(f.replay(from)), []string{"ADDED told", "DELETED told"})
		}},
	}
}
