package backendtest

import (
	"fmt"
	"slices"

	"github.com/sluicegw/sluice/backend"
)

func indexStatements() []statement {
	return []statement{
		{"an index orders by value, then by namespace and name, and leaves out what has no row", func(f *fixture) {
			f.start()
			f.must(
				rows(create(key("c"), "1"), row("size", "1")), rows(create(key("b"), "1"), row("size", "2")),
				rows(create(key("a"), "1"), row("size", "2")), rows(create(key("d"), "1"), row("other", "0")), create(key("e"), "1"),
			)
			want := []string{"c", "a", "b"}
			equal(f, names(f.list(backend.Range{Kind: "Net", Index: "size"}).Resources), want)
			slices.Reverse(want)
			equal(f, names(f.list(backend.Range{Kind: "Net", Index: "size", Reverse: true}).Resources), want)
			equal(f, f.list(backend.Range{Kind: "Net", Index: "size", Count: true}).Count, 3)
			equal(f, len(f.list(backend.Range{Kind: "Net", Index: "siz"}).Resources), 0)
		}},
		{"values of all types keep their order", func(f *fixture) {
			f.start()
			var values [][]byte
			for _, i := range []int64{-1 << 63, -256, -1, 0, 1, 255, 256, 1<<63 - 1} {
				values = append(values, backend.AppendInt(nil, i))
			}
			values = append(values, backend.AppendBool(nil, false), backend.AppendBool(nil, true))
			for i := range values {
				j := (i*7 + 3) % len(values)
				f.must(rows(create(key(fmt.Sprintf("n%02d", j)), "1"), backend.Row{Index: "i", Value: values[j]}))
			}
			got := names(f.list(backend.Range{Kind: "Net", Index: "i"}).Resources)
			equal(f, slices.IsSorted(got), true)
			equal(f, len(got), len(values))
		}},
		{"an exact value takes its rows: h2 does not match h22", func(f *fixture) {
			f.start()
			for i, v := range oddNames() {
				f.must(rows(create(key(fmt.Sprintf("n%02d", i)), v+"!"), row("i", v)))
			}
			for _, v := range oddNames() {
				value := backend.AppendString(nil, v)
				for _, reverse := range []bool{false, true} {
					page := f.list(backend.Range{Kind: "Net", Index: "i", Start: value, End: backend.PrefixEnd(value), Reverse: reverse})
					equal(f, len(page.Resources), 1)
					equal(f, string(page.Resources[0].Body), "j"+v+"!")
				}
			}
		}},
		{"a value prefix takes what starts with it", func(f *fixture) {
			f.start()
			for i, v := range oddNames() {
				f.must(rows(create(key(fmt.Sprintf("n%02d", i)), "1"), row("i", v)))
			}
			for _, prefix := range []string{"h2", "a\x00", "a\xff", "\xff"} {
				start := backend.AppendStringPrefix(nil, prefix)
				want := 0
				for _, v := range oddNames() {
					if len(v) >= len(prefix) && v[:len(prefix)] == prefix {
						want++
					}
				}
				equal(f, f.list(backend.Range{Kind: "Net", Index: "i", Start: start, End: backend.StringPrefixEnd(start), Count: true}).Count, want)
			}
		}},
		{"a namespace filters an index, its pages and its count", func(f *fixture) {
			f.start()
			for i := range 12 {
				ns := []string{"b\x00", "b"}[i%2]
				f.must(rows(create(backend.Key{Kind: "Net", Namespace: ns, Name: fmt.Sprintf("n%02d", i)}, "1"), row("i", fmt.Sprint(i%3))))
			}
			r := backend.Range{Kind: "Net", Index: "i", Namespace: "b", Limit: 6}
			page := f.list(r)
			equal(f, names(page.Resources), []string{"n03", "n09", "n01", "n07", "n05", "n11"})
			equal(f, page.More, false)
			r.Limit = 5
			equal(f, f.list(r).More, true)
			equal(f, f.list(backend.Range{Kind: "Net", Index: "i", Namespace: "b", Count: true}).Count, 6)
			one := backend.AppendString(nil, "1")
			equal(f, f.list(backend.Range{Kind: "Net", Index: "i", Namespace: "b", Start: one, End: backend.PrefixEnd(one), Count: true}).Count, 2)
		}},
		{"pages of an index follow the order tuple, both ways", func(f *fixture) {
			f.start()
			for i := range 20 {
				f.must(rows(create(key(fmt.Sprintf("n%02d", i)), "1"), row("i", fmt.Sprint(i*7%5))))
			}
			for _, reverse := range []bool{false, true} {
				want := names(f.list(backend.Range{Kind: "Net", Index: "i", Reverse: reverse}).Resources)
				var got []string
				r := backend.Range{Kind: "Net", Index: "i", Reverse: reverse, Limit: 3}
				for more := true; more; {
					page := f.list(r)
					got, more = append(got, names(page.Resources)...), page.More
					last := page.Resources[len(page.Resources)-1]
					place := append(slices.Clone(last.Rows[0].Value), backend.OrderTuple(last.Namespace, last.Name)...)
					if reverse {
						r.End = place
					} else {
						r.Start = backend.Successor(place)
					}
				}
				equal(f, got, want)
			}
		}},
		{"a resource with several rows comes once for each", func(f *fixture) {
			f.start()
			f.must(rows(create(key("a"), "1"), row("tag", "x"), row("tag", "z")), rows(create(key("b"), "1"), row("tag", "y")))
			equal(f, names(f.list(backend.Range{Kind: "Net", Index: "tag"}).Resources), []string{"a", "b", "a"})
			equal(f, f.list(backend.Range{Kind: "Net", Index: "tag", Count: true}).Count, 3)
		}},
		{"rows move with their resource and show its newest state", func(f *fixture) {
			f.start()
			f.must(rows(create(key("a"), "1"), row("i", "1"), row("i", "2")))
			f.must(rows(put(key("a"), "2"), row("i", "2"), row("i", "3")))
			at := func(v string) []*backend.Resource {
				value := backend.AppendString(nil, v)
				return f.list(backend.Range{Kind: "Net", Index: "i", Start: value, End: backend.PrefixEnd(value)}).Resources
			}
			now := f.get(key("a"))
			equal(f, len(at("1")), 0)
			equal(f, at("2"), []*backend.Resource{now})
			equal(f, at("3"), []*backend.Resource{now})
			f.must(remove(key("a")))
			equal(f, f.list(backend.Range{Kind: "Net", Index: "i", Count: true}).Count, 0)
		}},
		{"rows of kinds and of namespaces with one name do not collide", func(f *fixture) {
			f.start()
			keys := []backend.Key{{Kind: "A", Namespace: "n", Name: "x"}, {Kind: "A", Namespace: "m", Name: "x"}, {Kind: "B", Namespace: "n", Name: "x"}, {Kind: "A", Name: "x"}}
			for _, k := range keys {
				f.must(rows(create(k, "1"), row("i", "1")))
			}
			equal(f, f.list(backend.Range{Kind: "A", Index: "i", Count: true}).Count, 3)
			f.must(remove(keys[0]))
			equal(f, f.list(backend.Range{Kind: "A", Index: "i", Count: true}).Count, 2)
			equal(f, f.list(backend.Range{Kind: "B", Index: "i", Count: true}).Count, 1)
		}},
	}
}
