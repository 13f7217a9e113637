package backendtest

import (
	"fmt"
	"time"

	"github.com/sluicegw/sluice/backend"
)

// stripped returns copies of resources without the fields that a bare read may
// leave out.
func stripped(rs []*backend.Resource) []*backend.Resource {
	out := make([]*backend.Resource, len(rs))
	for i, r := range rs {
		if r != nil {
			bare := *r
			bare.Refs, bare.Declared = nil, ""
			out[i] = &bare
		}
	}
	return out
}

func bareStatements() []statement {
	return []statement{
		{"a bare read shows the same resources, but for references and their fingerprint", func(f *fixture) {
			f.start()
			var keys []backend.Key
			for i := range 20 {
				a := refs(
					create(key(fmt.Sprint("n", i)), fmt.Sprint("body ", i)), bound("t"), loose(fmt.Sprint("u", i)),
				)
				a.Put.Declared, a.Put.Deleting = fmt.Sprint("d", i%2), i%4 == 0
				a.Put.Finalizers = new(i % 3)
				if i%5 == 0 {
					a.Put.Refs = nil
				}
				f.must(a)
				keys = append(keys, key(fmt.Sprint("n", i)), key(fmt.Sprint("none", i)))
			}
			whole, err := f.Get(f.ctx(), keys...)
			f.wantErr(err, nil)
			bare, err := backend.GetBare(f.ctx(), f.Store, keys...)
			f.wantErr(err, nil)
			equal(f, stripped(bare), stripped(whole))
			target := key("t")
			for _, r := range []backend.Range{
				{Kind: "Net"}, {Kind: "Net", Reverse: true, Limit: 7}, {Kind: "Net", Namespace: key("").Namespace, Limit: 20}, {Kind: "Net", Limit: 19},
				{Kind: "Net", Deleting: true}, {Kind: "Net", Deleting: true, Reverse: true, Limit: 3}, {Referenced: &target}, {Referenced: &target, BoundOnly: true, Limit: 3},
			} {
				want := f.list(r)
				r.Bare = true
				got := f.list(r)
				equal(f, stripped(got.Resources), stripped(want.Resources))
				equal(f, got.More, want.More)
			}
		}},
		{"a range of keys alone shows keys, revisions and expiries, page by page as another range does", func(f *fixture) {
			f.start()
			for i := range 20 {
				a := create(
					backend.Key{Kind: "Net", Namespace: fmt.Sprint("ns", i%3), Name: fmt.Sprint("n", i)},
					fmt.Sprint("body ", i),
				)
				a.Put.Deleting, a.Put.Finalizers = i%4 == 0, new(i%3)
				if i%5 == 0 {
					a.Put.ExpiresAt = f.clock.Now().Add(time.Duration(i) * time.Minute)
				}
				f.must(a)
			}
			f.clock.Advance(6 * time.Minute) // one has expired
			var rs []backend.Range
			for _, r := range []backend.Range{
				{Kind: "Net"}, {Kind: "Net", Limit: 7, Reverse: true},
				{Kind: "Net", Limit: 3, Start: backend.OrderTuple("ns1", "")}, {Kind: "Net", Namespace: "ns2"},
			} {
				want := f.list(r)
				for i, r := range want.Resources {
					want.Resources[i] = &backend.Resource{
						Key:      r.Key,
						Envelope: backend.Envelope{Revision: r.Revision, ExpiresAt: r.ExpiresAt},
					}
				}
				r.KeysOnly = true
				equal(f, f.list(r), want)
				r.Limit = max(r.Limit, 1)
				rs = append(rs, r)
			}
			many, err := f.ranges(f.ctx(), append(rs, backend.Range{Kind: "Net", Limit: 20}))
			f.wantErr(err, nil)
			for i, r := range rs {
				equal(f, many[i], f.list(r))
			}
			equal(f, many[len(rs)], f.list(backend.Range{Kind: "Net"}))
			target := key("t")
			for _, r := range []backend.Range{
				{Kind: "Net", Deleting: true, Limit: 1}, {Referenced: &target, Limit: 1},
			} {
				r.KeysOnly = true
				_, err := f.Range(f.ctx(), r)
				f.wantErr(err, backend.ErrInvalid)
			}
		}},
		{"a page that holds all says that there is no more", func(f *fixture) {
			f.start()
			for i := range 5 {
				f.must(deleting(create(key(fmt.Sprint("n", i)), "1")))
			}
			for _, r := range []backend.Range{
				{Kind: "Net"}, {Kind: "Net", Reverse: true}, {Kind: "Net", Deleting: true},
			} {
				for limit := 1; limit <= 7; limit++ {
					r.Limit, r.Bare = limit, limit%2 == 0
					page := f.list(r)
					equal(f, len(page.Resources), min(limit, 5))
					equal(f, page.More, limit < 5)
				}
			}
		}},
	}
}
