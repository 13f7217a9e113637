package backendtest

import (
	"fmt"
	"strings"
	"time"

	"github.com/sluicegw/sluice/backend"
)

// reindex gives the resource at a revision other rows.
func reindex(k backend.Key, rev backend.Revision, fingerprint string, rows ...backend.Row) backend.Action {
	return backend.Action{Key: k, If: backend.Condition{Revision: rev}, Op: backend.OpReindex, Put: backend.Put{Fingerprint: fingerprint, Rows: rows}}
}

// by gives a put the fingerprint of an index definition.
func by(a backend.Action, fingerprint string) backend.Action {
	a.Put.Fingerprint = fingerprint
	return a
}

// definition is the part of the reserved index that one fingerprint has.
func definition(fingerprint string) backend.Range {
	value := backend.AppendString(nil, fingerprint)
	return backend.Range{Kind: "Net", Index: backend.DefinitionIndex, Start: value, End: backend.PrefixEnd(value)}
}

func reindexStatements() []statement {
	return []statement{
		{"a reindex replaces rows and fingerprint and nothing else", func(f *fixture) {
			f.start()
			before := f.must(expiring(refs(rows(by(create(key("a"), "1"), "f1"), row("i", "1"), row("j", "1")), bound("t")), f.clock.Now().Add(time.Hour))).Resources[0]
			f.clock.Advance(time.Second)
			res := f.must(reindex(key("a"), before.Revision, "f2", row("j", "1"), row("k", "2")))
			want := *before
			want.Rows, want.Fingerprint = []backend.Row{row("j", "1"), row("k", "2")}, "f2"
			equal(f, f.get(key("a")), &want)
			equal(f, res.Resources[0], &want)
			equal(f, res.Revisions[0], backend.Revision{})
			equal(f, len(f.list(backend.Range{Kind: "Net", Index: "i"}).Resources), 0)
			for _, index := range []string{"j", "k"} {
				equal(f, f.list(backend.Range{Kind: "Net", Index: index}).Resources, []*backend.Resource{&want})
			}
			equal(f, f.referrers(key("t"), true), []string{"a"})
		}},
		{"a reindex has no revision, no log entry and no event, and sequences stay dense", func(f *fixture) {
			f.start()
			from := f.position()
			w := f.watch(from)
			rev := f.must(by(create(key("a"), "1"), "f1")).Revisions[0]
			at := f.position()
			res := f.must(reindex(key("a"), rev, "f2", row("i", "1")))
			equal(f, f.after(res), at)
			equal(f, f.position(), at)
			second := f.must(by(put(key("b"), "1"), "f2")).Revisions[0]
			equal(f, second.Seq, rev.Seq+1)
			equal(f, summary(f.replay(from)), []string{"ADDED a", "ADDED b"})
			var seen []string
			for len(seen) < 2 {
				seen = append(seen, summary(f.next(w).Events)...)
			}
			equal(f, seen, []string{"ADDED a", "ADDED b"})
		}},
		{"the next change replaces the rows of the reindex, and says so", func(f *fixture) {
			f.start()
			rev := f.must(rows(by(create(key("a"), "1"), "f1"), row("i", "1"))).Revisions[0]
			f.must(reindex(key("a"), rev, "f2", row("i", "2")))
			from := f.position()
			f.must(rows(by(put(key("a"), "2"), "f2"), row("i", "3")))
			f.must(remove(key("a")))
			events := f.replay(from)
			equal(f, events[0].RowsBefore, []backend.Row{row("i", "2")})
			equal(f, events[0].FingerprintBefore, "f2")
			equal(f, events[1].RowsBefore, []backend.Row{row("i", "3")})
			equal(f, f.list(backend.Range{Kind: "Net", Index: "i", Count: true}).Count, 0)
		}},
		{"a reindex of another revision, of an absent or an expired resource fails its batch", func(f *fixture) {
			f.start()
			old := f.must(by(create(key("a"), "1"), "f1")).Revisions[0]
			rev := f.must(by(put(key("a"), "2"), "f1"), expiring(by(create(key("b"), "1"), "f1"), f.clock.Now().Add(time.Second))).Revisions
			f.refuse(1, backend.ErrConflict, put(key("z"), "1"), reindex(key("a"), old, "f2"))
			f.refuse(0, backend.ErrNotFound, reindex(key("none"), old, "f2"))
			f.clock.Advance(time.Minute)
			f.refuse(1, backend.ErrNotFound, reindex(key("a"), rev[0], "f2"), reindex(key("b"), rev[1], "f2"))
			equal(f, f.get(key("a")).Fingerprint, "f1")
			f.must(reindex(key("a"), rev[0], "f2"))
		}},
		{"a reindex can be done again, for its revision is still the current one", func(f *fixture) {
			f.start()
			rev := f.must(by(create(key("a"), "1"), "f1")).Revisions[0]
			for range 2 {
				f.must(reindex(key("a"), rev, "f2", row("i", "1")))
			}
			f.must(with(put(key("a"), "2"), backend.Condition{Revision: rev}))
		}},
		{"the definition index has every resource by its fingerprint, also the empty one", func(f *fixture) {
			f.start()
			f.must(by(create(key("a"), "1"), "f1"), by(create(key("b"), "1"), "f2"), create(key("c"), "1"))
			equal(f, names(f.list(backend.Range{Kind: "Net", Index: backend.DefinitionIndex}).Resources), []string{"c", "a", "b"})
			f.must(by(put(key("c"), "2"), "f1"))
			equal(f, names(f.list(definition("f1")).Resources), []string{"a", "c"})
			equal(f, names(f.list(definition("")).Resources), []string{})
			f.must(reindex(key("b"), f.get(key("b")).Revision, "f1"))
			f.must(remove(key("a")))
			equal(f, names(f.list(definition("f1")).Resources), []string{"b", "c"})
			equal(f, f.list(definition("f2")).Resources, nil)
			f.stop()
			f.reopen()
			equal(f, names(f.list(definition("f1")).Resources), []string{"b", "c"})
		}},
		{"the deleting index has the resources whose deletion was requested", func(f *fixture) {
			f.start()
			deleting := put(key("b"), "2")
			deleting.Put.Deleting = true
			f.must(create(key("a"), "1"), create(key("b"), "1"))
			r := backend.Range{Kind: "Net", Index: backend.DeletingIndex}
			equal(f, len(f.list(r).Resources), 0)
			f.must(deleting)
			equal(f, names(f.list(r).Resources), []string{"b"})
			f.must(reindex(key("b"), f.get(key("b")).Revision, "f2"))
			equal(f, names(f.list(r).Resources), []string{"b"})
			f.must(remove(key("b")))
			equal(f, len(f.list(r).Resources), 0)
		}},
		{"reserved rows are in no resource and in no event, and nobody can put them", func(f *fixture) {
			f.start()
			from := f.position()
			rev := f.must(rows(by(create(key("a"), "1"), "f1"), row("i", "1"))).Revisions[0]
			f.must(rows(by(put(key("a"), "2"), "f2"), row("i", "1")))
			events := f.replay(from)
			equal(f, events[1].RowsBefore, []backend.Row{row("i", "1")})
			equal(f, events[1].RowsChanged(), false)
			equal(f, f.get(key("a")).Rows, []backend.Row{row("i", "1")})
			for _, index := range []string{backend.DefinitionIndex, backend.DeletingIndex, "_"} {
				_, err := f.apply(rows(put(key("a"), "3"), row(index, "1")))
				f.wantErr(err, backend.ErrInvalid)
				_, err = f.apply(reindex(key("a"), rev, "f3", row(index, "1")))
				f.wantErr(err, backend.ErrInvalid)
			}
		}},
		{"a reindex names a revision, and gives rows and fingerprint alone", func(f *fixture) {
			f.start()
			rev := f.must(create(key("a"), "1")).Revisions[0]
			for i, change := range []func(*backend.Action){
				func(a *backend.Action) { a.If = backend.Condition{Presence: backend.Present} },
				func(a *backend.Action) { a.Put.Body = []byte("j1") },
				func(a *backend.Action) { a.Put.UID = "u" },
				func(a *backend.Action) { a.Put.Caller = true },
				func(a *backend.Action) { a.Put.Deleting = true },
				func(a *backend.Action) { a.Put.Finalizers = new(0) },
				func(a *backend.Action) { a.Put.ExpiresAt = f.clock.Now() },
				func(a *backend.Action) { a.Put.Refs = []backend.Ref{loose("t")} },
				func(a *backend.Action) { a.Put.Declared = "d" },
				func(a *backend.Action) { a.Put.Fingerprint = strings.Repeat("x", 65) },
				func(a *backend.Action) { a.Put.Rows = make([]backend.Row, backend.MaxRows+1) },
				func(a *backend.Action) { a.Put.Rows = []backend.Row{row("i", "1"), row("i", "1")} },
			} {
				a := reindex(key("a"), rev, "f2")
				change(&a)
				if _, err := f.apply(a); err == nil {
					f.Errorf("case %d was accepted", i)
				} else {
					f.wantErr(err, backend.ErrInvalid)
				}
			}
		}},
		{"one call that asks for rows and for other definitions never misses a row", func(f *fixture) {
			f.start()
			// Gateway 1 makes rows of index i, gateway 2 does not know it and gateway 1 repairs.
			f.must(rows(by(create(key("a"), "0"), "f1"), row("i", "x")))
			other := backend.Range{Kind: "Net", Index: backend.DefinitionIndex, Start: backend.PrefixEnd(backend.AppendString(nil, "f1")), Limit: 1}
			workers(4, func(w int) {
				for i := range 50 {
					var err error
					switch w {
					case 0:
						_, err = f.applyAs(f.Store, w, i, by(put(key("a"), fmt.Sprint(i)), "f2"))
					case 1:
						if rs, _ := f.Get(f.ctx(), key("a")); rs[0] != nil {
							_, _ = f.applyAs(f.Store, w, i, reindex(key("a"), rs[0].Revision, "f1", row("i", "x")))
						}
					default:
						var got []backend.Page
						got, err = f.ranges(f.ctx(), []backend.Range{other, {Kind: "Net", Index: "i", Limit: 1}})
						if err == nil && len(got[0].Resources) == 0 && len(got[1].Resources) == 0 {
							f.Error("the row is missing and nothing says so")
						}
					}
					if err != nil {
						f.Error(err)
					}
				}
			})
		}},
	}
}
