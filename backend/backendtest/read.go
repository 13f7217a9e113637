package backendtest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/sluicegw/sluice/backend"
)

// oddNames are names that a careless key encoding confuses, in the order of their bytes.
func oddNames() []string {
	return []string{
		"\x00", "\x00\x00", "\x00\xff", "\x01", "a", "a\x00", "a\x00\x00", "a\x00\x01", "a\x00\xff", "a\x01", "a/b", "aa", "a\xff", "a\xff\x00", "a\xff\xff",
		"h", "h2", "h2\x00", "h2\xff", "h22", "h3", "é", "日本語", "\xff", "\xff\x00", "\xff\xff",
	}
}

func getStatements() []statement {
	return []statement{
		{"a get of large resources returns the first that fit, and the rest when asked again", func(f *fixture) {
			f.start()
			const n = 24
			keys := []backend.Key{key("absent")}
			for i := range n {
				keys = append(keys, key(fmt.Sprintf("n%02d", i)))
				f.must(sized(keys[i+1], backend.MaxResourceBytes))
			}
			var got []*backend.Resource
			for len(got) < len(keys) {
				some, err := f.Get(f.ctx(), keys[len(got):]...)
				f.wantErr(err, nil)
				size := 0
				for _, r := range some {
					if r != nil {
						size += r.Size()
					}
				}
				if len(some) == 0 || len(some) > 1 && size > backend.MaxPageBytes {
					f.Fatalf("%d resources of %d bytes", len(some), size)
				}
				got = append(got, some...)
			}
			equal(f, got[0], nil)
			for i, r := range got[1:] {
				equal(f, r.Key, keys[i+1])
			}
		}},
		{"resources come in the order of the keys, nil where there is none", func(f *fixture) {
			f.start()
			f.must(create(key("a"), "1"), create(key("b"), "2"))
			rs, err := f.Get(f.ctx(), key("b"), key("none"), key("a"), key("b"))
			f.wantErr(err, nil)
			equal(f, rs[1], nil)
			equal(f, names([]*backend.Resource{rs[0], rs[2], rs[3]}), []string{"b", "a", "b"})
			rs, err = f.Get(f.ctx())
			f.wantErr(err, nil)
			equal(f, len(rs), 0)
		}},
		{"kind, namespace and name all tell keys apart", func(f *fixture) {
			f.start()
			keys := []backend.Key{
				{Kind: "Net", Namespace: "a", Name: "b"}, {Kind: "Net", Namespace: "ab", Name: "b"},
				{Kind: "Neta", Name: "b"}, {Kind: "Net", Name: "ab"}, {Kind: "Net", Namespace: "a", Name: "bb"},
			}
			for i, k := range keys {
				f.must(create(k, fmt.Sprint(i)))
			}
			for i, k := range keys {
				equal(f, string(f.get(k).Body), fmt.Sprint("j", i))
			}
		}},
		{"names of any bytes are stored, found and deleted apart", func(f *fixture) {
			f.start()
			for _, n := range oddNames() {
				f.must(create(key(n), n+"!"))
			}
			for i, n := range oddNames() {
				equal(f, string(f.get(key(n)).Body), "j"+n+"!")
				f.must(remove(key(n)))
				equal(f, f.get(key(n)), nil)
				equal(f, f.list(backend.Range{Kind: "Net", Count: true}).Count, len(oddNames())-i-1)
			}
		}},
		{"a read returns the whole body, whatever its bytes", func(f *fixture) {
			f.start()
			body := make([]byte, 100_000)
			for i := range body {
				body[i] = byte(i * 7)
			}
			a := put(key("a"), "")
			a.Put.Body = body
			f.must(a)
			equal(f, slices.Equal(f.get(key("a")).Body, body), true)
		}},
		{"1,001 keys are served and one more is ErrInvalid", func(f *fixture) {
			f.start()
			f.must(create(key("a"), "1"))
			keys := make([]backend.Key, backend.MaxKeys)
			for i := range keys {
				keys[i] = key(fmt.Sprint("n", i))
			}
			keys[len(keys)-1] = key("a")
			rs, err := f.Get(f.ctx(), keys...)
			f.wantErr(err, nil)
			equal(f, rs[len(rs)-1].Name, "a")
			_, err = f.Get(f.ctx(), append(keys, key("b"))...)
			f.wantErr(err, backend.ErrInvalid)
		}},
		{"internal resources are read and written like any", func(f *fixture) {
			f.start()
			k := backend.Key{Kind: "_lease", Name: "purge"}
			f.must(create(k, "1"))
			equal(f, string(f.get(k).Body), "j1")
			equal(f, len(f.list(backend.Range{Kind: "_lease"}).Resources), 1)
			f.must(remove(k))
		}},
	}
}

func rangeStatements() []statement {
	return []statement{
		{"names come in the order of their bytes, both ways", func(f *fixture) {
			f.start()
			for i := range oddNames() {
				f.must(create(key(oddNames()[(i*7+3)%len(oddNames())]), "1"))
			}
			sorted := slices.Clone(oddNames())
			slices.Sort(sorted)
			equal(f, names(f.list(backend.Range{Kind: "Net"}).Resources), sorted)
			slices.Reverse(sorted)
			equal(f, names(f.list(backend.Range{Kind: "Net", Reverse: true}).Resources), sorted)
		}},
		{"namespaces come in their order and one can be asked for", func(f *fixture) {
			f.start()
			for _, ns := range []string{"b", "a", "ab", "a\x00", "b\xff"} {
				f.must(
					create(backend.Key{Kind: "Net", Namespace: ns, Name: "n1"}, "1"),
					create(backend.Key{Kind: "Net", Namespace: ns, Name: "n0"}, "1"),
				)
			}
			var got []string
			for _, r := range f.list(backend.Range{Kind: "Net"}).Resources {
				got = append(got, r.Namespace+r.Name)
			}
			equal(
				f, got,
				[]string{"an0", "an1", "a\x00n0", "a\x00n1", "abn0", "abn1", "bn0", "bn1", "b\xffn0", "b\xffn1"},
			)
			for _, reverse := range []bool{false, true} {
				page := f.list(backend.Range{Kind: "Net", Namespace: "a", Reverse: reverse})
				equal(f, len(page.Resources), 2)
				equal(f, page.Resources[0].Namespace, "a")
				equal(f, f.list(backend.Range{Kind: "Net", Namespace: "a", Count: true}).Count, 2)
			}
			equal(f, len(f.list(backend.Range{Kind: "Net", Namespace: "none"}).Resources), 0)
		}},
		{"kinds never mix", func(f *fixture) {
			f.start()
			for _, kind := range []string{"Net", "Net\x00", "Net\xff", "Neta", "Ne"} {
				f.must(create(backend.Key{Kind: kind, Namespace: "default", Name: "of-" + kind}, "1"))
			}
			for _, reverse := range []bool{false, true} {
				equal(f, names(f.list(backend.Range{Kind: "Net", Reverse: reverse}).Resources), []string{"of-Net"})
			}
			equal(f, len(f.list(backend.Range{Kind: "N"}).Resources), 0)
		}},
		{"bounds are half-open, both ways and at every pair", func(f *fixture) {
			f.start()
			for _, n := range oddNames() {
				f.must(create(key(n), "1"))
			}
			sorted := slices.Sorted(slices.Values(oddNames()))
			for i := range sorted {
				for j := range sorted {
					r := backend.Range{
						Kind:  "Net",
						Start: backend.OrderTuple("default", sorted[i]),
						End:   backend.OrderTuple("default", sorted[j]),
					}
					want := append([]string{}, sorted[i:max(i, j)]...)
					equal(f, names(f.list(r).Resources), want)
					slices.Reverse(want)
					r.Reverse = true
					equal(f, names(f.list(r).Resources), want)
				}
			}
		}},
		{"Successor makes a lower bound exclusive and an upper one inclusive", func(f *fixture) {
			f.start()
			for _, n := range oddNames() {
				f.must(create(key(n), "1"))
			}
			sorted := slices.Sorted(slices.Values(oddNames()))
			for i, n := range sorted {
				after := backend.Successor(backend.OrderTuple("default", n))
				equal(
					f, names(f.list(backend.Range{Kind: "Net", Start: after}).Resources),
					append([]string{}, sorted[i+1:]...),
				)
				equal(f, names(f.list(backend.Range{Kind: "Net", End: after}).Resources), sorted[:i+1])
			}
		}},
		{"a name prefix takes what starts with it and nothing else", func(f *fixture) {
			f.start()
			for _, n := range oddNames() {
				f.must(create(key(n), "1"))
			}
			for _, prefix := range []string{"h2", "a", "a\x00", "\xff", "\x00", "日"} {
				start := backend.AppendStringPrefix(backend.AppendString(nil, "default"), prefix)
				var want []string
				for _, n := range slices.Sorted(slices.Values(oddNames())) {
					if len(n) >= len(prefix) && n[:len(prefix)] == prefix {
						want = append(want, n)
					}
				}
				equal(
					f,
					names(f.list(backend.Range{
						Kind:  "Net",
						Start: start,
						End:   backend.StringPrefixEnd(start),
					}).Resources),
					want,
				)
			}
		}},
		{"bounds outside the namespace asked for do not leave it", func(f *fixture) {
			f.start()
			for _, ns := range []string{"a", "b", "c"} {
				f.must(create(backend.Key{Kind: "Net", Namespace: ns, Name: "n-" + ns}, "1"))
			}
			r := backend.Range{
				Kind:      "Net",
				Namespace: "b",
				Start:     backend.OrderTuple("a", "a"),
				End:       backend.OrderTuple("c", "z"),
			}
			equal(f, names(f.list(r).Resources), []string{"n-b"})
			r.Start = backend.OrderTuple("c", "a")
			equal(f, len(f.list(r).Resources), 0)
			r.Start, r.End = nil, backend.OrderTuple("a", "z")
			equal(f, len(f.list(r).Resources), 0)
		}},
		{"pages of every size show each resource once, both ways", func(f *fixture) {
			f.start()
			f.must(puts(30)...)
			for _, reverse := range []bool{false, true} {
				want := names(f.list(backend.Range{Kind: "Net", Reverse: reverse}).Resources)
				equal(f, len(want), 30)
				for limit := 1; limit <= 31; limit++ {
					equal(f, names(traverse(f, backend.Range{Kind: "Net", Reverse: reverse, Limit: limit})), want)
				}
			}
		}},
		{"More says that there is more, and an exactly full last page says there is not", func(f *fixture) {
			f.start()
			f.must(puts(4)...)
			for limit, more := range map[int]bool{1: true, 3: true, 4: false, 5: false} {
				equal(f, f.list(backend.Range{Kind: "Net", Limit: limit}).More, more)
				equal(f, f.list(backend.Range{Kind: "Net", Limit: limit, Reverse: true}).More, more)
			}
			equal(
				f, f.list(backend.Range{Kind: "Net", Limit: 3, End: backend.OrderTuple("default", "n003")}).More, false,
			)
			equal(f, f.list(backend.Range{Kind: "None", Limit: 1}).More, false)
		}},
		{"the bytes of a page are bounded, the first resource always comes", func(f *fixture) {
			f.start()
			for i := range 10 {
				f.must(sized(key(fmt.Sprint("n", i)), backend.MaxResourceBytes))
			}
			for _, reverse := range []bool{false, true} {
				page := f.list(backend.Range{Kind: "Net", Reverse: reverse})
				equal(f, len(page.Resources), backend.MaxPageBytes/backend.MaxResourceBytes)
				equal(f, page.More, true)
				equal(f, len(traverse(f, backend.Range{Kind: "Net", Reverse: reverse, Limit: 100})), 10)
			}
			equal(f, f.list(backend.Range{Kind: "Net", Count: true}).Count, 10)
		}},
		{"a count counts the live in the bounds", func(f *fixture) {
			f.start()
			f.must(puts(10)...)
			f.must(expiring(create(key("z"), "1"), f.clock.Now().Add(1)))
			f.clock.Advance(1e9)
			r := backend.Range{Kind: "Net", Count: true}
			equal(f, f.list(r), backend.Page{Count: 10})
			r.Start, r.End = backend.OrderTuple("default", "n003"), backend.OrderTuple("default", "n007")
			equal(f, f.list(r).Count, 4)
			r.Reverse = true
			equal(f, f.list(r).Count, 4)
		}},
		{"a range without a kind or with a limit out of bounds is ErrInvalid", func(f *fixture) {
			f.start()
			for _, r := range []backend.Range{
				{Limit: 1}, {Kind: "Net"}, {Kind: "Net", Limit: -1}, {Kind: "Net", Limit: backend.MaxLimit + 1},
				{Kind: "Net", Limit: math.MinInt},
			} {
				_, err := f.Range(f.ctx(), r)
				f.wantErr(err, backend.ErrInvalid)
			}
		}},
		{"a read whose context has ended fails with its error", func(f *fixture) {
			f.start()
			f.must(puts(3)...)
			ctx, cancel := context.WithCancel(f.ctx())
			cancel()
			_, err := f.Range(ctx, backend.Range{Kind: "Net", Count: true})
			f.wantErr(err, context.Canceled)
			_, err = f.Get(ctx, key("n001"))
			f.wantErr(err, context.Canceled)
			_, err = f.Position(ctx)
			f.wantErr(err, context.Canceled)
			_, err = f.Watch(ctx, backend.Watch{})
			f.wantErr(err, context.Canceled)
			_, err = f.Purge(ctx)
			f.wantErr(err, context.Canceled)
		}},
	}
}

// traverse reads all pages of a range by name. It fails the test if a page with More has no
// resources.
func traverse(f *fixture, r backend.Range) []*backend.Resource {
	f.Helper()
	var all []*backend.Resource
	for {
		page := f.list(r)
		all = append(all, page.Resources...)
		if !page.More {
			return all
		}
		if len(page.Resources) == 0 {
			f.Fatal(errors.New("an empty page says that there is more"))
		}
		last := page.Resources[len(page.Resources)-1]
		place := backend.OrderTuple(last.Namespace, last.Name)
		if r.Reverse {
			r.End = place
		} else {
			r.Start = backend.Successor(place)
		}
	}
}
