package backendtest

import (
	"errors"
	"fmt"
	"time"

	"github.com/sluicegw/sluice/backend"
)

func conditionStatements() []statement {
	return []statement{
		{"Any holds on an absent key and on a live one", func(f *fixture) {
			f.start()
			f.must(put(key("a"), "1"))
			f.must(put(key("a"), "2"))
			equal(f, string(f.get(key("a")).Body), "j2")
		}},
		{"Absent holds on an absent key and fails with ErrExists on a live one", func(f *fixture) {
			f.start()
			f.must(create(key("a"), "1"))
			ce := f.refuse(0, backend.ErrExists, create(key("a"), "2"))
			equal(f, ce.Current, f.get(key("a")))
			equal(f, string(f.get(key("a")).Body), "j1")
		}},
		{"Absent holds again after a delete", func(f *fixture) {
			f.start()
			f.must(create(key("a"), "1"))
			f.must(remove(key("a")))
			f.must(create(key("a"), "2"))
		}},
		{"Present fails with ErrNotFound on an absent key", func(f *fixture) {
			f.start()
			present := backend.Condition{Presence: backend.Present}
			ce := f.refuse(0, backend.ErrNotFound, with(put(key("a"), "1"), present))
			equal(f, ce.Current, nil)
			f.must(create(key("a"), "1"))
			f.must(with(put(key("a"), "2"), present))
		}},
		{"a revision holds only while it is the current one", func(f *fixture) {
			f.start()
			first := f.must(create(key("a"), "1")).Revisions[0]
			f.must(with(put(key("a"), "2"), backend.Condition{Revision: first}))
			ce := f.refuse(0, backend.ErrConflict, with(put(key("a"), "3"), backend.Condition{Revision: first}))
			equal(f, ce.Current.Revision, f.get(key("a")).Revision)
			f.refuse(
				0, backend.ErrConflict,
				with(put(key("a"), "3"), backend.Condition{Revision: backend.Revision{Epoch: 1, Seq: 1}}),
			)
		}},
		{"a revision on an absent key is ErrNotFound, not a conflict", func(f *fixture) {
			f.start()
			f.refuse(
				0, backend.ErrNotFound,
				with(put(key("a"), "1"), backend.Condition{Revision: backend.Revision{Epoch: 7, Seq: 7}}),
			)
		}},
		{"a uid tells a re-created namesake apart", func(f *fixture) {
			f.start()
			a := create(key("a"), "1")
			a.Put.UID = "first"
			f.must(a)
			f.must(with(put(key("a"), "2"), backend.Condition{UID: "first"}))
			f.must(remove(key("a")))
			f.refuse(0, backend.ErrNotFound, with(remove(key("a")), backend.Condition{UID: "first"}))
			a.Put.UID = "second"
			f.must(a)
			f.refuse(0, backend.ErrConflict, with(remove(key("a")), backend.Condition{UID: "first"}))
			f.must(with(remove(key("a")), backend.Condition{UID: "second"}))
		}},
		{"NotDeleting and Deleting look at the envelope", func(f *fixture) {
			f.start()
			again := deleting(put(key("a"), "1"))
			f.refuse(0, backend.ErrNotFound, with(put(key("a"), "1"), backend.Condition{NotDeleting: true}))
			f.refuse(0, backend.ErrNotFound, with(remove(key("a")), backend.Condition{Deleting: true}))
			f.must(create(key("a"), "1"))
			f.refuse(0, backend.ErrNotDeleting, with(remove(key("a")), backend.Condition{Deleting: true}))
			f.must(with(again, backend.Condition{NotDeleting: true}))
			equal(f, f.get(key("a")).Deleting, true)
			f.refuse(0, backend.ErrDeleting, with(put(key("a"), "2"), backend.Condition{NotDeleting: true}))
			f.must(with(remove(key("a")), backend.Condition{Deleting: true}))
		}},
		{"Unfinalized holds while the count of finalizers is 0", func(f *fixture) {
			f.start()
			free := backend.Condition{Unfinalized: true}
			f.refuse(0, backend.ErrNotFound, with(remove(key("a")), free))
			f.refuse(0, backend.ErrNotFound, with(put(key("a"), "1"), free))
			f.must(create(key("a"), "1"))
			f.must(with(finalized(put(key("a"), "2"), 2), free))
			ce := f.refuse(0, backend.ErrFinalized, with(remove(key("a")), free))
			equal(f, ce.Current, f.get(key("a")))
			f.refuse(0, backend.ErrFinalized, with(put(key("a"), "3"), free))
			f.refuse(1, backend.ErrFinalized, put(key("b"), "1"), check(key("a"), free))
			f.refuse(0, backend.ErrFinalized, with(finalized(put(key("a"), "3"), 0), free))
			f.must(finalized(put(key("a"), "3"), 0))
			f.must(check(key("a"), free), put(key("b"), "1"))
			f.must(with(remove(key("a")), free))
		}},
		{"Unfinalized is judged last, after Unreferenced", func(f *fixture) {
			f.start()
			all := backend.Condition{Deleting: true, Unreferenced: true, Unfinalized: true}
			target := finalized(create(key("t"), "1"), 1)
			f.must(target, refs(create(key("p"), "1"), bound("t")))
			f.refuse(0, backend.ErrNotDeleting, with(remove(key("t")), all))
			again := deleting(put(key("t"), "2"))
			f.must(again)
			f.refuse(0, backend.ErrReferenced, with(remove(key("t")), all))
			f.must(remove(key("p")))
			f.refuse(0, backend.ErrFinalized, with(remove(key("t")), all))
			again.Put.Finalizers = new(0)
			f.must(again)
			f.must(with(remove(key("t")), all))
		}},
		{"an expired resource is held by no finalizer", func(f *fixture) {
			f.start()
			f.must(finalized(expiring(create(key("a"), "1"), f.clock.Now().Add(time.Second)), 1))
			f.clock.Advance(time.Minute)
			f.refuse(0, backend.ErrNotFound, with(remove(key("a")), backend.Condition{Unfinalized: true}))
			f.must(create(key("a"), "2"))
			equal(f, f.get(key("a")).Finalizers, 0)
		}},
		{"all that is set must hold, judged in the order of the fields", func(f *fixture) {
			f.start()
			rev := f.must(create(key("a"), "1")).Revisions[0]
			all := backend.Condition{Presence: backend.Present, UID: "uid-a", Revision: rev, NotDeleting: true}
			f.must(check(key("a"), all), put(key("b"), "1"))
			bad := all
			bad.UID = "other"
			f.refuse(0, backend.ErrConflict, check(key("a"), bad), put(key("b"), "2"))
			bad = all
			bad.Revision.Seq++
			bad.NotDeleting, bad.Deleting = false, true
			f.refuse(0, backend.ErrConflict, check(key("a"), bad), put(key("b"), "2"))
		}},
		{"the first action that fails is named", func(f *fixture) {
			f.start()
			f.must(create(key("a"), "1"))
			f.refuse(1, backend.ErrExists, create(key("b"), "1"), create(key("a"), "2"), remove(key("absent")))
		}},
		{"a failing batch changes nothing and logs nothing", func(f *fixture) {
			f.start()
			f.must(refs(create(key("a"), "1"), bound("t")), create(key("b"), "1"))
			from := f.position()
			f.refuse(3, backend.ErrNotFound,
				deleting(refs(put(key("a"), "2"), bound("u"))), remove(key("b")), create(key("c"), "1"),
				check(key("d"), backend.Condition{Presence: backend.Present}))
			equal(f, names(f.list(backend.Range{Kind: "Net"}).Resources), []string{"a", "b"})
			equal(f, f.referrers(key("t"), true), []string{"a"})
			equal(f, f.referrers(key("u"), false), []string{})
			equal(f, len(f.list(backend.Range{Kind: "Net", Deleting: true}).Resources), 0)
			equal(f, len(f.replay(from)), 0)
		}},
		{"deleting an absent key is ErrNotFound, also the second time", func(f *fixture) {
			f.start()
			f.refuse(0, backend.ErrNotFound, remove(key("a")))
			f.must(create(key("a"), "1"))
			f.must(remove(key("a")))
			f.refuse(0, backend.ErrNotFound, remove(key("a")))
		}},
		{"a check guards a write on another key", func(f *fixture) {
			f.start()
			lock := create(key("lock"), "1")
			rev := f.must(lock).Revisions[0]
			guarded := []backend.Action{check(key("lock"), backend.Condition{Revision: rev}), put(key("a"), "1")}
			f.must(guarded...)
			f.must(put(key("lock"), "2"))
			f.refuse(0, backend.ErrConflict, guarded...)
			f.must(check(key("free"), backend.Condition{Presence: backend.Absent}), put(key("a"), "2"))
		}},
		{"a move is one batch, and an outdated one fails", func(f *fixture) {
			f.start()
			rev := f.must(create(key("from"), "1")).Revisions[0]
			move := []backend.Action{
				with(remove(key("from")), backend.Condition{Revision: rev}), create(key("to"), "1"),
			}
			f.must(move...)
			equal(f, names(f.list(backend.Range{Kind: "Net"}).Resources), []string{"to"})
			f.refuse(0, backend.ErrNotFound, move...)
		}},
		{"conditions are judged against the state before the batch", func(f *fixture) {
			f.start()
			// Each condition holds before the batch. The put of the other key must
			// not change that.
			f.must(create(key("a"), "1"), create(key("b"), "1"))
			rev := f.get(key("b")).Revision
			f.must(put(key("a"), "2"), with(put(key("b"), "2"), backend.Condition{Revision: rev}))
		}},
		{"a malformed condition, key or operation is ErrInvalid", func(f *fixture) {
			f.start()
			for i, a := range []backend.Action{
				check(key("a"), backend.Condition{}),
				check(key("a"), backend.Condition{Presence: 9}),
				with(put(key("a"), "1"), backend.Condition{Presence: backend.Absent, UID: "u"}),
				with(put(key("a"), "1"), backend.Condition{Presence: backend.Absent, NotDeleting: true}),
				with(put(key("a"), "1"), backend.Condition{Presence: backend.Absent, Unfinalized: true}),
				with(put(key("a"), "1"), backend.Condition{Deleting: true, NotDeleting: true}),
				finalized(put(key("a"), "1"), -1),
				finalized(put(key("a"), "1"), backend.MaxFinalizers+1),
				with(remove(key("a")), backend.Condition{Presence: backend.Absent}),
				{Key: key("a"), Op: 9},
				put(backend.Key{Kind: "Net", Namespace: "default"}, "1"),
				put(backend.Key{Namespace: "default", Name: "a"}, "1"),
			} {
				_, err := f.apply(a, put(key("z"), "1"))
				if !errors.Is(err, backend.ErrInvalid) {
					f.Errorf("case %d, %+v: error %v", i, a, err)
				}
			}
			equal(f, f.list(backend.Range{Kind: "Net", Count: true}).Count, 0)
		}},
		{"a ConditionError says the key and the cause, nothing of the body", func(f *fixture) {
			f.start()
			f.must(create(key("a"), "secret"))
			ce := f.refuse(0, backend.ErrExists, create(key("a"), "2"))
			equal(f, ce.Error(), fmt.Sprintf("%s: %v", key("a"), backend.ErrExists))
		}},
	}
}

func resultStatements() []statement {
	return []statement{
		{"results are parallel to the actions", func(f *fixture) {
			f.start()
			f.must(create(key("old"), "1"), create(key("seen"), "1"))
			old, seen := f.get(key("old")), f.get(key("seen"))
			res := f.must(
				check(key("seen"), backend.Condition{Presence: backend.Present}),
				create(key("new"), "1"),
				remove(key("old")),
				check(key("none"), backend.Condition{Presence: backend.Absent}),
			)
			equal(f, res.Resources, []*backend.Resource{seen, f.get(key("new")), old, nil})
			equal(f, res.Revisions[0], backend.Revision{})
			equal(f, res.Revisions[1], f.get(key("new")).Revision)
			equal(f, res.Revisions[2].Seq, res.Revisions[1].Seq+1)
			equal(f, res.Revisions[3], backend.Revision{})
			equal(f, f.after(res), f.position())
			equal(f, f.own(res.Position), res.Revisions[2])
		}},
		{"a put returns what a get returns, envelope, references and body", func(f *fixture) {
			f.start()
			a := expiring(refs(create(key("a"), `{"x":1}`), bound("t"), loose("\x00\xff")), f.clock.Now().Add(1e12))
			a.Put.Deleting, a.Put.Finalizers = true, new(backend.MaxFinalizers)
			res := f.must(a)
			got := f.get(key("a"))
			equal(f, res.Resources[0], got)
			now := f.clock.Now().Truncate(1e6)
			rev := res.Revisions[0]
			equal(f, *got, backend.Resource{
				Key: key("a"),
				Envelope: backend.Envelope{
					UID: "uid-a", Revision: rev, SpecRevision: rev, Deleting: true, Finalizers: backend.MaxFinalizers, Declared: "declared", BindingVersion: 1,
					ExpiresAt: now.Add(1e12), CreatedAt: now, UpdatedAt: now,
				},
				Refs: a.Put.Refs, Body: a.Put.Body,
			})
			equal(f, got.CreatedAt.Location().String(), "UTC")
		}},
		{"an existing resource keeps its uid and its time of creation", func(f *fixture) {
			f.start()
			f.must(create(key("a"), "1"))
			first := f.get(key("a"))
			f.clock.Advance(1e9)
			again := put(key("a"), "2")
			again.Put.UID = "another"
			f.must(again)
			got := f.get(key("a"))
			equal(f, got.UID, first.UID)
			equal(f, got.CreatedAt, first.CreatedAt)
			equal(f, got.UpdatedAt, first.UpdatedAt.Add(1e9))
		}},
		{"a put that says nothing of finalizers keeps their count, alone and in a batch", func(f *fixture) {
			f.start()
			f.must(finalized(create(key("a"), "1"), 3))
			from := f.position()
			f.must(put(key("a"), "2"))
			f.must(put(key("a"), "3"), create(key("b"), "1"))
			equal(f, f.get(key("a")).Finalizers, 3)
			equal(f, f.get(key("b")).Finalizers, 0)
			f.must(rebind(f.get(key("a")), "d", bound("t")))
			equal(f, f.get(key("a")).Finalizers, 3)
			res := f.must(finalized(put(key("a"), "4"), 1))
			equal(f, res.Resources[0], f.get(key("a")))
			f.must(remove(key("a")))
			f.must(create(key("a"), "5"))
			var counts []int
			for _, e := range f.replay(from) {
				if e.Resource.Key == key("a") {
					counts = append(counts, e.Resource.Finalizers)
				}
			}
			equal(f, counts, []int{3, 3, 1, 1, 0})
		}},
		{"a put replaces expiry and deleting", func(f *fixture) {
			f.start()
			f.must(deleting(expiring(create(key("a"), "1"), f.clock.Now().Add(1e9))))
			f.must(put(key("a"), "2"))
			got := f.get(key("a"))
			equal(f, got.Deleting, false)
			equal(f, got.ExpiresAt.IsZero(), true)
			f.clock.Advance(1e10)
			equal(f, f.purge(), 0)
			equal(f, f.get(key("a")), got)
		}},
	}
}
