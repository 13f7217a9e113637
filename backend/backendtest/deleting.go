package backendtest

import (
	"fmt"
	"slices"
	"time"

	"github.com/sluicegw/sluice/backend"
)

// inDeletion returns the names of the resources of the kind Net whose deletion was
// requested.
func (f *fixture) inDeletion() []string {
	f.Helper()
	return names(f.list(backend.Range{Kind: "Net", Deleting: true}).Resources)
}

func deletingStatements() []statement {
	return []statement{
		{"Deleting takes the resources of the kind whose deletion was requested, in the order of their names", func(f *fixture) {
			f.start()
			var want []string
			for i := range oddNames() {
				name := oddNames()[(i*7+3)%len(oddNames())]
				a := create(key(name), name)
				a.Put.Deleting = i%2 == 0
				if a.Put.Deleting {
					want = append(want, name)
				}
				f.must(a)
			}
			for _, kind := range []string{"Ne", "Net\x00", "Neta"} {
				f.must(deleting(create(backend.Key{Kind: kind, Namespace: "default", Name: "other"}, "1")))
			}
			slices.Sort(want)
			equal(f, f.inDeletion(), want)
			equal(f, f.list(backend.Range{Kind: "Net", Deleting: true, Count: true}).Count, len(want))
			equal(f, f.list(backend.Range{Kind: "Net", Count: true}).Count, len(oddNames()))
			slices.Reverse(want)
			equal(f, names(f.list(backend.Range{Kind: "Net", Deleting: true, Reverse: true}).Resources), want)
			equal(f, len(f.list(backend.Range{Kind: "N", Deleting: true}).Resources), 0)
		}},
		{"pages of every size show each once, both ways", func(f *fixture) {
			f.start()
			actions := puts(40)
			for i := range actions {
				actions[i].Put.Deleting = i%3 > 0
			}
			f.must(actions...)
			for _, reverse := range []bool{false, true} {
				want := names(f.list(backend.Range{Kind: "Net", Deleting: true, Reverse: reverse}).Resources)
				equal(f, len(want), 26)
				for limit := 1; limit <= 27; limit++ {
					equal(
						f,
						names(traverse(f, backend.Range{Kind: "Net", Deleting: true, Reverse: reverse, Limit: limit})),
						want,
					)
				}
				equal(f, f.list(backend.Range{Kind: "Net", Deleting: true, Reverse: reverse, Limit: 25}).More, true)
				equal(f, f.list(backend.Range{Kind: "Net", Deleting: true, Reverse: reverse, Limit: 26}).More, false)
			}
		}},
		{"bounds are half-open, and a namespace leaves out all others", func(f *fixture) {
			f.start()
			for _, ns := range []string{"", "a", "a\x00", "ab", "b"} {
				for i := range 4 {
					a := create(backend.Key{Kind: "Net", Namespace: ns, Name: fmt.Sprint("n", i)}, "1")
					a.Put.Deleting = i > 0
					f.must(a)
				}
			}
			r := backend.Range{Kind: "Net", Deleting: true, Namespace: "a"}
			equal(f, names(f.list(r).Resources), []string{"n1", "n2", "n3"})
			r.Start = backend.OrderTuple("a", "n2")
			equal(f, names(f.list(r).Resources), []string{"n2", "n3"})
			r.End = backend.OrderTuple("a", "n3")
			equal(f, names(f.list(r).Resources), []string{"n2"})
			r.End = backend.Successor(r.End)
			r.Reverse = true
			equal(f, names(f.list(r).Resources), []string{"n3", "n2"})
			r.Start = backend.Successor(r.Start)
			equal(f, names(f.list(r).Resources), []string{"n3"})
			r = backend.Range{
				Kind:     "Net",
				Deleting: true,
				Start:    backend.OrderTuple("a", "n3"),
				End:      backend.OrderTuple("ab", "n2"),
				Count:    true,
			}
			equal(f, f.list(r).Count, 5)
			r.Namespace = "b"
			equal(f, f.list(r).Count, 0)
		}},
		{"a request comes and goes with the put, and the newest state is shown", func(f *fixture) {
			f.start()
			f.must(create(key("a"), "1"), deleting(create(key("b"), "1")))
			equal(f, f.inDeletion(), []string{"b"})
			f.must(deleting(put(key("a"), "2")), deleting(refs(put(key("b"), "2"), bound("t"))))
			equal(f, f.list(backend.Range{Kind: "Net", Deleting: true}).Resources, []*backend.Resource{f.get(key("a")), f.get(key("b"))})
			f.must(rebind(f.get(key("b")), "other", loose("t")))
			equal(f, f.list(backend.Range{Kind: "Net", Deleting: true}).Resources[1], f.get(key("b")))
			f.must(put(key("a"), "3"))
			equal(f, f.inDeletion(), []string{"b"})
			f.must(remove(key("b")))
			equal(f, f.inDeletion(), []string{})
			f.must(create(key("b"), "3"))
			equal(f, f.inDeletion(), []string{})
		}},
		{"an expired resource is left out and not counted, and a new one in its place is another", func(f *fixture) {
			f.start()
			at := f.clock.Now().Add(time.Second)
			f.must(
				expiring(deleting(create(key("a"), "1")), at), expiring(deleting(create(key("b"), "1")), at),
				deleting(create(key("c"), "1")),
			)
			equal(f, f.inDeletion(), []string{"a", "b", "c"})
			f.clock.Advance(time.Second)
			equal(f, f.inDeletion(), []string{"c"})
			equal(f, f.list(backend.Range{Kind: "Net", Deleting: true, Count: true}).Count, 1)
			equal(f, f.list(backend.Range{Kind: "Net", Deleting: true, Limit: 1}).More, false)
			f.must(create(key("a"), "2"))
			equal(f, f.inDeletion(), []string{"c"})
			equal(f, f.purge(), 1)
			equal(f, f.inDeletion(), []string{"c"})
		}},
		{"requests outlive a reopening", func(f *fixture) {
			f.start()
			f.must(deleting(create(key("a"), "1")), create(key("b"), "1"))
			f.stop()
			f.reopen()
			equal(f, f.list(backend.Range{Kind: "Net", Deleting: true}).Resources, []*backend.Resource{f.get(key("a"))})
			f.must(put(key("a"), "2"))
			equal(f, f.inDeletion(), []string{})
		}},
	}
}
