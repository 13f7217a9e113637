package backendtest

import (
	"fmt"

	"github.com/sluicegw/sluice/backend"
)

// stripped are resources without what a bare read may leave out.
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
				a := refs(create(key(fmt.Sprint("n", i)), fmt.Sprint("body ", i)), bound("t"), loose(fmt.Sprint("u", i)))
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
		{"a page that holds all says that there is no more", func(f *fixture) {
			f.start()
			for i := range 5 {
				f.must(deleting(create(key(fmt.Sprint("n", i)), "1")))
			}
			for _, r := range []backend.Range{{Kind: "Net"}, {Kind: "Net", Reverse: true}, {Kind: "Net", Deleting: true}} {
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
