package backendtest

import (
	"fmt"
	"time"

	"github.com/sluicegw/sluice/backend"
)

// zone returns a key of a GLOBAL kind.
func zone(name string) backend.Key { return backend.Key{Kind: "Zone", Name: name} }

// toZone returns a reference to a zone.
func toZone(name string, bound bool) backend.Ref { return backend.Ref{Key: zone(name), Bound: bound} }

// within returns a key of the kind Net in a namespace.
func within(namespace, name string) backend.Key {
	return backend.Key{Kind: "Net", Namespace: namespace, Name: name}
}

// namespaces returns two namespaces. near lies in the shard of GLOBAL kinds. far lies in
// another shard if the store has several.
func (f *fixture) namespaces() (near, far string) {
	for i := 0; near == "" || far == ""; i++ {
		namespace := fmt.Sprint("ns-", i)
		switch apart := !backend.SameShard(f.Store, "", namespace); {
		case near == "" && !apart:
			near = namespace
		case far == "" && (apart || f.position().Shards() == 1):
			far = namespace
		}
	}
	return near, far
}

// globalStatements are about references to GLOBAL kinds, and about checks of GLOBAL
// keys.
func globalStatements() []statement {
	return []statement{
		{"what refers to a GLOBAL key is found in all namespaces, in the order of kind, namespace and name", func(f *fixture) {
			f.start()
			var want []backend.Key
			for i := range 9 {
				namespace := fmt.Sprint("ns-", i)
				for _, kind := range []string{"Net", "Port"} {
					f.must(refs(
						create(backend.Key{Kind: kind, Namespace: namespace, Name: "a"}, "1"), toZone("t", false),
					))
				}
				want = append(want, within(namespace, "a"))
			}
			f.must(refs(create(zone("own"), "1"), toZone("t", false)))
			for i := range 9 {
				want = append(want, backend.Key{Kind: "Port", Namespace: fmt.Sprint("ns-", i), Name: "a"})
			}
			want = append(want, zone("own"))
			target := zone("t")
			keys := func(r backend.Range) (out []backend.Key) {
				for _, r := range f.list(r).Resources {
					out = append(out, r.Key)
				}
				return out
			}
			equal(f, keys(backend.Range{Referenced: &target}), want)
			equal(f, keys(backend.Range{Referenced: &target, Namespace: "ns-4"}), []backend.Key{want[4], want[13]})
			equal(f, keys(backend.Range{Referenced: &target, Namespace: "ns-4", Kind: "Port"}), []backend.Key{want[13]})
			equal(
				f,
				keys(backend.Range{
					Referenced: &target,
					Kind:       "Net",
					Start:      want[3].Append(nil),
					End:        want[6].Append(nil),
				}),
				want[3:6],
			)
			for _, reverse := range []bool{false, true} {
				r := backend.Range{Referenced: &target, Reverse: reverse, Limit: 4}
				var got []backend.Key
				for more := true; more; {
					page := f.list(r)
					for _, r := range page.Resources {
						got = append(got, r.Key)
					}
					more = page.More
					if reverse {
						r.End = got[len(got)-1].Append(nil)
					} else {
						r.Start = backend.Successor(got[len(got)-1].Append(nil))
					}
				}
				equal(f, got, keys(backend.Range{Referenced: &target, Reverse: reverse}))
				equal(f, len(got), 19)
			}
			for n, r := range map[int]backend.Range{
				19: {},
				9:  {Kind: "Port"},
				2:  {Namespace: "ns-4"},
				1:  {Namespace: "ns-4", Kind: "Net"},
				0:  {BoundOnly: true},
			} {
				r.Referenced, r.Count = &target, true
				equal(f, f.list(r).Count, n)
			}
		}},
		{"a reference to a GLOBAL key is stored, logged, replaced, expires and goes with its resource", func(f *fixture) {
			f.start()
			_, far := f.namespaces()
			from := f.position()
			f.must(refs(create(within(far, "a"), "1"), toZone("t", false), backend.Ref{Key: within(far, "b")}))
			equal(f, f.get(within(far, "a")).Refs, []backend.Ref{toZone("t", false), {Key: within(far, "b")}})
			equal(f, f.referrers(zone("t"), false), []string{"a"})
			f.must(refs(put(within(far, "a"), "2"), toZone("u", false)))
			equal(f, f.referrers(zone("t"), false), []string{})
			equal(f, f.referrers(zone("u"), false), []string{"a"})
			f.must(remove(within(far, "a")))
			equal(f, f.referrers(zone("u"), false), []string{})
			events := f.replay(from)
			equal(f, events[0].Resource.Refs, []backend.Ref{toZone("t", false), {Key: within(far, "b")}})
			equal(f, events[1].Resource.Refs, []backend.Ref{toZone("u", false)})
			f.must(expiring(refs(create(within(far, "a"), "1"), toZone("t", false)), f.clock.Now().Add(time.Second)))
			f.clock.Advance(time.Minute)
			target := zone("t")
			equal(f, f.referrers(target, false), []string{})
			equal(f, f.list(backend.Range{Referenced: &target, Count: true}).Count, 0)
		}},
		{"a rebind replaces references to GLOBAL keys", func(f *fixture) {
			f.start()
			_, far := f.namespaces()
			r := f.must(refs(create(within(far, "a"), "1"), toZone("t", false))).Resources[0]
			rebind := backend.Action{
				Key: r.Key,
				Op:  backend.OpRebind,
				If:  backend.Condition{Revision: r.Revision, BindingVersion: r.BindingVersion},
			}
			f.must(refs(rebind, toZone("u", false)))
			equal(f, f.referrers(zone("t"), false), []string{})
			equal(f, f.referrers(zone("u"), false), []string{"a"})
		}},
		{"a check of a GLOBAL key is judged beside a namespace that lies in its shard", func(f *fixture) {
			f.start()
			near, _ := f.namespaces()
			f.refuse(0, backend.ErrNotFound, check(zone("t"), backend.Condition{Presence: backend.Present}), put(within(near, "a"), "1"))
			z := f.must(create(zone("t"), "1")).Resources[0]
			there := backend.Condition{Presence: backend.Present, UID: z.UID, NotDeleting: true}
			res := f.must(check(zone("t"), there), put(within(near, "a"), "1"))
			equal(f, res.Resources[0], z)
			equal(f, res.Resources[1], f.get(within(near, "a")))
			f.must(put(within(near, "a"), "2"), check(zone("t"), there))
			f.must(deleting(put(zone("t"), "2")))
			f.refuse(1, backend.ErrDeleting, put(within(near, "a"), "3"), check(zone("t"), there))
		}},
		{"a check of a GLOBAL key in another shard than the namespace is ErrInvalid", func(f *fixture) {
			f.start()
			_, far := f.namespaces()
			_, err := f.apply(put(within(far, "a"), "1"), check(zone("t"), backend.Condition{Presence: backend.Absent}))
			if backend.SameShard(f.Store, "", far) {
				equal(f, err, nil)
				return
			}
			f.wantErr(err, backend.ErrInvalid)
			equal(f, f.get(within(far, "a")), nil)
		}},
		{"a batch does not write a GLOBAL key beside a namespace, nor check a namespace beside a GLOBAL key", func(f *fixture) {
			f.start()
			near, _ := f.namespaces()
			absent := backend.Condition{Presence: backend.Absent}
			for _, actions := range [][]backend.Action{
				{put(zone("t"), "1"), put(within(near, "a"), "1")}, {put(within(near, "a"), "1"), put(zone("t"), "1")},
				{
					put(zone("t"), "1"), check(within(near, "a"), absent),
				}, {check(within(near, "a"), absent), put(zone("t"), "1")},
				{
					put(within(near, "a"), "1"), check(within("other", "a"), absent),
				}, {refs(put(zone("t"), "1"), backend.Ref{Key: within(near, "a")})},
			} {
				_, err := f.apply(actions...)
				f.wantErr(err, backend.ErrInvalid)
			}
		}},
		{"a bound reference holds a GLOBAL key in its shard, and is ErrInvalid to another shard", func(f *fixture) {
			f.start()
			near, far := f.namespaces()
			f.must(create(zone("t"), "1"))
			f.must(refs(create(within(near, "a"), "1"), toZone("t", true)))
			free := backend.Condition{Unreferenced: true}
			f.refuse(0, backend.ErrReferenced, with(remove(zone("t")), free))
			equal(f, f.referrers(zone("t"), true), []string{"a"})
			f.must(refs(put(within(near, "a"), "2"), toZone("t", false)))
			_, err := f.apply(refs(create(within(far, "b"), "1"), toZone("t", true)))
			if backend.SameShard(f.Store, "", far) {
				equal(f, err, nil)
				f.refuse(0, backend.ErrReferenced, with(remove(zone("t")), free))
				f.must(remove(within(far, "b")))
			} else {
				f.wantErr(err, backend.ErrInvalid)
				r := f.must(refs(create(within(far, "b"), "1"), toZone("t", false))).Resources[0]
				_, err = f.apply(refs(
					backend.Action{
						Key: r.Key,
						Op:  backend.OpRebind,
						If:  backend.Condition{Revision: r.Revision, BindingVersion: r.BindingVersion},
					},
					toZone("t", true),
				))
				f.wantErr(err, backend.ErrInvalid)
			}
			f.must(with(remove(zone("t")), free))
		}},
		{"of a deletion of a GLOBAL key and a binding to it that race exactly one succeeds, in one shard", func(f *fixture) {
			f.start()
			near, _ := f.namespaces()
			for round := range 20 {
				f.must(put(zone("t"), "1"))
				errs := make([]error, 2)
				workers(2, func(w int) {
					if w == 0 {
						_, errs[w] = f.applyAs(
							f.Store, w, round, with(remove(zone("t")), backend.Condition{Unreferenced: true}),
						)
						return
					}
					_, errs[w] = f.applyAs(f.Store, w, round, check(zone("t"), backend.Condition{Presence: backend.Present}), refs(put(within(near, "p"), "1"), toZone("t", true)))
				})
				equal(f, (errs[0] == nil) != (errs[1] == nil), true)
				if errs[1] == nil {
					f.must(remove(within(near, "p")))
				}
			}
		}},
	}
}
