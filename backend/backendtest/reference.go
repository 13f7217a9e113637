package backendtest

import (
	"fmt"
	"time"

	"github.com/sluicegw/sluice/backend"
)

// refs returns the put with references.
func refs(a backend.Action, rs ...backend.Ref) backend.Action {
	a.Put.Refs, a.Put.Declared = rs, "declared"
	return a
}

// bound and loose return a bound and an unbound reference to a resource of the
// kind Net.
func bound(name string) backend.Ref { return backend.Ref{Key: key(name), Bound: true} }

func loose(name string) backend.Ref { return backend.Ref{Key: key(name)} }

// referrers returns the names of the resources that refer to a key.
func (f *fixture) referrers(k backend.Key, boundOnly bool) []string {
	f.Helper()
	return names(f.list(backend.Range{Referenced: &k, BoundOnly: boundOnly}).Resources)
}

func referenceStatements() []statement {
	port := func(name string) backend.Key { return backend.Key{Kind: "Port", Namespace: "default", Name: name} }
	return []statement{
		{"a key's referrers come in the order of kind, namespace and name, whether the key exists or not", func(f *fixture) {
			f.start()
			f.must(
				refs(create(port("b"), "1"), loose("t")), refs(create(key("z"), "1"), bound("t")), refs(
					create(port("a"), "1"), bound("t"), loose("u"),
				),
				refs(create(key("t\x00"), "1"), loose("t\x00")), create(key("none"), "1"),
			)
			equal(f, f.referrers(key("t"), false), []string{"z", "a", "b"})
			equal(f, f.referrers(key("t"), true), []string{"z", "a"})
			equal(f, f.referrers(key("u"), false), []string{"a"})
			equal(f, f.referrers(key("u"), true), []string{})
			equal(f, f.referrers(key("t\x00"), false), []string{"t\x00"})
			equal(f, f.referrers(backend.Key{Kind: "Net", Name: "t"}, false), []string{})
			f.must(create(key("t"), "1"))
			equal(f, f.referrers(key("t"), false), []string{"z", "a", "b"})
		}},
		{"referrers are paged both ways, counted, and narrowed to a kind", func(f *fixture) {
			f.start()
			for i := range 7 {
				f.must(
					refs(create(key(fmt.Sprint("n", i)), "1"), bound("t")),
					refs(create(port(fmt.Sprint("p", i)), "1"), loose("t")),
				)
			}
			target := key("t")
			for _, reverse := range []bool{false, true} {
				r := backend.Range{Referenced: &target, Reverse: reverse, Limit: 3}
				all := f.list(backend.Range{Referenced: &target, Reverse: reverse}).Resources
				var got []*backend.Resource
				for more := true; more; {
					page := f.list(r)
					got, more = append(got, page.Resources...), page.More
					place := got[len(got)-1].Key.Append(nil)
					if reverse {
						r.End = place
					} else {
						r.Start = backend.Successor(place)
					}
				}
				equal(f, len(got), 14)
				equal(f, got, all)
			}
			equal(f, f.list(backend.Range{Referenced: &target, Count: true}).Count, 14)
			equal(f, f.list(backend.Range{Referenced: &target, BoundOnly: true, Count: true}).Count, 7)
			equal(f, f.list(backend.Range{Referenced: &target, Kind: "Port", Count: true}).Count, 7)
			equal(
				f, names(f.list(backend.Range{Referenced: &target, Kind: "Port", Limit: 2, Reverse: true}).Resources),
				[]string{"p6", "p5"},
			)
			equal(f, f.list(backend.Range{Referenced: &target, Kind: "Po", Count: true}).Count, 0)
			equal(f, f.list(backend.Range{Referenced: &target, Namespace: "default", Count: true}).Count, 14)
			equal(f, f.list(backend.Range{Referenced: &target, Namespace: "other", Count: true}).Count, 0)
		}},
		{"references are stored, logged and replaced with their resource, and go with it", func(f *fixture) {
			f.start()
			from := f.position()
			res := f.must(refs(create(key("a"), "1"), bound("t"), loose("u")))
			equal(f, f.get(key("a")).Refs, []backend.Ref{bound("t"), loose("u")})
			equal(f, f.get(key("a")), res.Resources[0])
			f.must(refs(put(key("a"), "2"), bound("u"), loose("v")))
			equal(f, f.referrers(key("t"), false), []string{})
			equal(f, f.referrers(key("u"), true), []string{"a"})
			equal(
				f,
				f.list(backend.Range{Referenced: &backend.Key{Kind: "Net", Namespace: "default", Name: "v"}}).Resources,
				[]*backend.Resource{f.get(key("a"))},
			)
			f.must(refs(put(key("a"), "3"), loose("u")))
			equal(f, f.referrers(key("u"), true), []string{})
			equal(f, f.referrers(key("u"), false), []string{"a"})
			f.must(remove(key("a")))
			equal(f, f.referrers(key("u"), false), []string{})
			events := f.replay(from)
			equal(f, events[0].Resource.Refs, []backend.Ref{bound("t"), loose("u")})
			equal(f, events[3].Resource.Refs, []backend.Ref{loose("u")})
		}},
		{"Unreferenced fails with ErrReferenced while another resource is bound", func(f *fixture) {
			f.start()
			free := backend.Condition{Unreferenced: true}
			f.refuse(0, backend.ErrNotFound, with(remove(key("t")), free))
			f.must(create(key("t"), "1"), refs(create(port("p"), "1"), bound("t")))
			ce := f.refuse(0, backend.ErrReferenced, with(remove(key("t")), free))
			equal(f, ce.Current, f.get(key("t")))
			f.refuse(1, backend.ErrReferenced, put(key("x"), "1"), check(key("t"), free))
			f.must(refs(put(port("p"), "2"), loose("t")))
			f.must(check(key("t"), free), put(key("x"), "1"))
			f.must(with(remove(key("t")), free))
		}},
		{"a resource never counts for itself", func(f *fixture) {
			f.start()
			f.must(refs(create(key("t"), "1"), bound("t")), refs(create(key("a"), "1"), bound("t")))
			f.refuse(0, backend.ErrReferenced, with(remove(key("t")), backend.Condition{Unreferenced: true}))
			equal(f, f.referrers(key("t"), true), []string{"a", "t"})
			f.must(remove(key("a")))
			f.must(with(remove(key("t")), backend.Condition{Unreferenced: true}))
		}},
		{"Unreferenced is judged after what the envelope says of deletion, and by the state before the batch", func(f *fixture) {
			f.start()
			f.must(create(key("t"), "1"), refs(create(port("p"), "1"), bound("t")))
			f.refuse(
				0, backend.ErrNotDeleting,
				with(remove(key("t")), backend.Condition{Deleting: true, Unreferenced: true}),
			)
			f.refuse(
				1, backend.ErrReferenced, remove(port("p")),
				with(remove(key("t")), backend.Condition{Unreferenced: true}),
			)
			f.must(with(remove(key("t")), backend.Condition{}), remove(port("p")))
		}},
		{"an expired referrer holds nothing and is not listed, before it is purged", func(f *fixture) {
			f.start()
			f.must(
				create(key("t"), "1"),
				expiring(refs(create(port("p"), "1"), bound("t")), f.clock.Now().Add(time.Second)),
			)
			f.refuse(0, backend.ErrReferenced, with(remove(key("t")), backend.Condition{Unreferenced: true}))
			f.clock.Advance(time.Minute)
			equal(f, f.referrers(key("t"), false), []string{})
			target := key("t")
			equal(f, f.list(backend.Range{Referenced: &target, Count: true}).Count, 0)
			f.must(with(remove(key("t")), backend.Condition{Unreferenced: true}))
			equal(f, f.purge(), 1)
		}},
		{"of a deletion and a binding that race exactly one succeeds", func(f *fixture) {
			f.start()
			for round := range 20 {
				f.must(put(key("t"), "1"))
				errs := make([]error, 2)
				workers(2, func(w int) {
					if w == 0 {
						_, errs[w] = f.applyAs(
							f.Store, w, round, with(remove(key("t")), backend.Condition{Unreferenced: true}),
						)
						return
					}
					_, errs[w] = f.applyAs(f.Store, w, round, check(key("t"), backend.Condition{Presence: backend.Present}), refs(put(port("p"), "1"), bound("t")))
				})
				equal(f, (errs[0] == nil) != (errs[1] == nil), true)
				if errs[1] == nil {
					f.must(remove(port("p")))
				}
			}
		}},
		{"references are found again after a reopening", func(f *fixture) {
			f.start()
			f.must(create(key("t"), "1"), refs(create(port("p"), "1"), bound("t")))
			f.stop()
			f.reopen()
			equal(f, f.referrers(key("t"), true), []string{"p"})
			f.refuse(0, backend.ErrReferenced, with(remove(key("t")), backend.Condition{Unreferenced: true}))
		}},
		{"1,024 references are taken, each once, whole, and to no other namespace", func(f *fixture) {
			f.start()
			many := make([]backend.Ref, backend.MaxRefs)
			for i := range many {
				many[i] = bound(fmt.Sprint("t", i))
			}
			f.must(refs(create(key("a"), "1"), many...))
			equal(f, f.referrers(key("t1023"), true), []string{"a"})
			for _, wrong := range [][]backend.Ref{
				append(many, loose("more")), {loose("t"), bound("t")}, {{
					Key: backend.Key{Kind: "Net", Namespace: "default"},
				}},
				{
					{Key: backend.Key{Namespace: "default", Name: "t"}},
				}, {{Key: backend.Key{Kind: "Net", Namespace: "other", Name: "t"}}},
			} {
				_, err := f.apply(refs(put(key("a"), "2"), wrong...))
				f.wantErr(err, backend.ErrInvalid)
			}
			f.must(remove(key("a")))
			equal(f, f.referrers(key("t0"), false), []string{})
		}},
		{"a range of references needs a whole key, and leaves no other out", func(f *fixture) {
			f.start()
			target := key("t")
			for _, r := range []backend.Range{
				{
					Referenced: &target,
					Deleting:   true,
					Kind:       "Net",
				}, {Referenced: &backend.Key{Kind: "Net"}}, {Kind: "Net", BoundOnly: true},
			} {
				r.Limit = 1
				_, err := f.Range(f.ctx(), r)
				f.wantErr(err, backend.ErrInvalid)
			}
		}},
	}
}
