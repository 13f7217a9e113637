package backendtest

import (
	"strings"
	"time"

	"github.com/sluicegw/sluice/backend"
)

// rebind returns a rebind of the resource to other references, with the
// fingerprint of their declarations.
func rebind(of *backend.Resource, declared string, rs ...backend.Ref) backend.Action {
	return backend.Action{
		Key: of.Key, Op: backend.OpRebind, If: backend.Condition{
			Revision:       of.Revision,
			BindingVersion: of.BindingVersion,
		},
		Put: backend.Put{Declared: declared, Refs: rs},
	}
}

func rebindStatements() []statement {
	return []statement{
		{"a rebind replaces references and their fingerprint, counts a pass, and changes nothing else", func(f *fixture) {
			f.start()
			before := f.must(expiring(
				refs(deleting(create(key("a"), "1")), bound("t"), loose("u")), f.clock.Now().Add(time.Hour),
			)).Resources[0]
			equal(f, before.BindingVersion, uint32(1))
			f.clock.Advance(time.Second)
			res := f.must(rebind(before, "other", loose("t"), bound("v")))
			want := *before
			want.Refs = []backend.Ref{loose("t"), bound("v")}
			want.Declared = "other"
			want.BindingVersion = 2
			equal(f, f.get(key("a")), &want)
			equal(f, res.Resources[0], &want)
			equal(f, res.Revisions[0], backend.Revision{})
			equal(f, f.list(backend.Range{Kind: "Net", Deleting: true}).Resources, []*backend.Resource{&want})
			equal(f, f.referrers(key("t"), true), []string{})
			equal(f, f.referrers(key("t"), false), []string{"a"})
			equal(f, f.referrers(key("u"), false), []string{})
			equal(f, f.referrers(key("v"), true), []string{"a"})
			f.stop()
			f.reopen()
			equal(f, f.get(key("a")), &want)
		}},
		{"a rebind can take all references away, and their fingerprint with them", func(f *fixture) {
			f.start()
			before := f.must(refs(create(key("a"), "1"), bound("t"))).Resources[0]
			f.must(rebind(before, ""))
			after := f.get(key("a"))
			equal(f, after.Refs, nil)
			equal(f, after.Declared, "")
			equal(f, f.referrers(key("t"), false), []string{})
		}},
		{"a rebind has no revision, no log entry and no event", func(f *fixture) {
			f.start()
			before := f.must(create(key("a"), "1")).Resources[0]
			from := f.position()
			res := f.must(rebind(before, "d", bound("t")))
			equal(f, f.after(res), from)
			f.must(put(key("b"), "1"))
			equal(f, summary(f.replay(from)), []string{"ADDED b"})
		}},
		{"of two rebinds of one state only one is applied, and neither of another revision", func(f *fixture) {
			f.start()
			before := f.must(create(key("a"), "1")).Resources[0]
			f.must(rebind(before, "d1", bound("t")))
			f.refuse(0, backend.ErrConflict, rebind(before, "d2", bound("u")))
			again := f.get(key("a"))
			f.must(put(key("a"), "2"))
			f.refuse(0, backend.ErrConflict, rebind(again, "d2", bound("u")))
			equal(f, f.get(key("a")).Refs, []backend.Ref{bound("t")})
		}},
		{"a put that was prepared before a rebind fails, whatever revision it names", func(f *fixture) {
			f.start()
			before := f.must(refs(create(key("a"), "1"), loose("t"))).Resources[0]
			f.must(rebind(before, "d", bound("t")))
			f.refuse(0, backend.ErrConflict, refs(with(put(key("a"), "2"), backend.Condition{Revision: before.Revision, BindingVersion: before.BindingVersion}), loose("t")))
			f.must(refs(with(put(key("a"), "2"), backend.Condition{Revision: before.Revision, BindingVersion: before.BindingVersion + 1}), loose("t")))
			equal(f, f.get(key("a")).BindingVersion, uint32(2))
			f.refuse(0, backend.ErrNotFound, with(put(key("none"), "1"), backend.Condition{BindingVersion: 1}))
		}},
		{"a put without declarations leaves references, their fingerprint and the passes as they are", func(f *fixture) {
			f.start()
			before := f.must(refs(create(key("a"), "1"), bound("t"), loose("u"))).Resources[0]
			f.must(rebind(before, "d", bound("t"), loose("v")))
			from := f.position()
			res := f.must(put(key("a"), "2"), put(key("b"), "1"))
			f.must(put(key("a"), "3"))
			after := f.get(key("a"))
			equal(f, string(after.Body), "j3")
			for _, r := range []*backend.Resource{after, res.Resources[0], f.replay(from)[0].Resource} {
				equal(f, r.Refs, []backend.Ref{bound("t"), loose("v")})
				equal(f, r.Declared, "d")
				equal(f, r.BindingVersion, uint32(2))
			}
			equal(f, res.Resources[1].Refs, nil)
			equal(f, f.referrers(key("t"), true), []string{"a"})
			f.must(create(key("t"), "1"))
			f.refuse(0, backend.ErrReferenced, with(remove(key("t")), backend.Condition{Unreferenced: true}))
		}},
		{"a re-created resource has had one pass, and no references of the one before it", func(f *fixture) {
			f.start()
			f.must(rebind(
				f.must(refs(expiring(create(key("a"), "1"), f.clock.Now().Add(time.Second)), bound("t"))).Resources[0],
				"d", bound("t"),
			))
			f.clock.Advance(time.Minute)
			f.must(create(key("a"), "2"))
			equal(f, f.get(key("a")).Refs, nil)
			equal(f, f.get(key("a")).BindingVersion, uint32(1))
			equal(f, f.referrers(key("t"), true), []string{})
		}},
		{"a rebind names a revision and passes, and gives references and their fingerprint alone", func(f *fixture) {
			f.start()
			before := f.must(create(key("a"), "1")).Resources[0]
			for i, change := range []func(*backend.Action){
				func(a *backend.Action) { a.If.Revision = backend.Revision{} },
				func(a *backend.Action) { a.If.BindingVersion = 0 },
				func(a *backend.Action) { a.Put.Body = []byte("j1") },
				func(a *backend.Action) { a.Put.UID = "u" },
				func(a *backend.Action) { a.Put.Caller = true },
				func(a *backend.Action) { a.Put.Deleting = true },
				func(a *backend.Action) { a.Put.Finalizers = new(0) },
				func(a *backend.Action) { a.Put.ExpiresAt = f.clock.Now() },
				func(a *backend.Action) { a.Put.Change = []byte("c") },
				func(a *backend.Action) { a.Put.Refs = []backend.Ref{loose("t"), bound("t")} },
				func(a *backend.Action) { a.Put.Declared = strings.Repeat("x", 65) },
				func(a *backend.Action) { a.Put.Declared = "" },
			} {
				a := rebind(before, "d", loose("t"))
				change(&a)
				if _, err := f.apply(a); err == nil {
					f.Errorf("case %d was accepted", i)
				} else {
					f.wantErr(err, backend.ErrInvalid)
				}
			}
			_, err := f.apply(backend.Action{
				Key: key("b"),
				Op:  backend.OpPut,
				Put: backend.Put{UID: "u", Body: []byte("j1"), Refs: []backend.Ref{loose("t")}},
			})
			f.wantErr(err, backend.ErrInvalid)
		}},
	}
}
