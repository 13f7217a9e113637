package backendtest

import (
	"context"
	"fmt"

	"github.com/sluicegw/sluice/backend"
)

// ranges calls Ranges, which every driver must implement.
func (f *fixture) ranges(ctx context.Context, rs []backend.Range) ([]backend.Page, error) {
	f.Helper()
	many, ok := f.Store.(backend.Ranger)
	if !ok {
		f.Fatal("the store is no Ranger")
	}
	return many.Ranges(ctx, rs)
}

func rangesStatements() []statement {
	return []statement{
		{"each range is answered as Range answers it, in the order they were asked", func(f *fixture) {
			f.start()
			for i := range 9 {
				a := refs(create(key(fmt.Sprint("n", i)), "1"), bound("t"))
				a.Put.Deleting = i%3 == 0
				f.must(a)
			}
			target := key("t")
			rs := []backend.Range{
				{Kind: "Net", Limit: 3}, {Kind: "Net", Limit: 2, Reverse: true}, {Kind: "Net", Deleting: true, Limit: 9}, {Kind: "Net", Count: true},
				{Kind: "None", Limit: 1}, {Kind: "Net", Limit: 3}, {Referenced: &target, Limit: 4}, {Kind: "Net", Deleting: true, Namespace: "other", Count: true},
			}
			got, err := f.ranges(f.ctx(), rs)
			f.wantErr(err, nil)
			want := make([]backend.Page, len(rs))
			for i, r := range rs {
				want[i] = f.list(r)
			}
			equal(f, got, want)
			got, err = f.ranges(f.ctx(), nil)
			f.wantErr(err, nil)
			equal(f, len(got), 0)
		}},
		{"1,000 ranges are served and one more is ErrInvalid", func(f *fixture) {
			f.start()
			f.must(create(key("a"), "1"))
			rs := make([]backend.Range, backend.MaxRanges)
			for i := range rs {
				rs[i] = backend.Range{Kind: "Net", Limit: 1}
			}
			got, err := f.ranges(f.ctx(), rs)
			f.wantErr(err, nil)
			equal(f, names(got[backend.MaxRanges-1].Resources), []string{"a"})
			_, err = f.ranges(f.ctx(), append(rs, backend.Range{Kind: "Net", Limit: 1}))
			f.wantErr(err, backend.ErrInvalid)
		}},
		{"the ranges of the shards have everything, each what lies in its namespaces", func(f *fixture) {
			f.start()
			shards, of := f.position().Shards(), func(string) int { return 0 }
			if s, ok := f.Store.(backend.Sharder); ok {
				of = s.Shard
			}
			want := make([][]string, shards)
			for i := range 40 {
				k := backend.Key{Kind: "Net", Namespace: fmt.Sprintf("ns-%02d", i), Name: "n"}
				f.must(deleting(create(k, "1")))
				want[of(k.Namespace)] = append(want[of(k.Namespace)], k.Namespace)
			}
			for shard := range shards {
				for _, r := range []backend.Range{{Kind: "Net", Limit: 3}, {Kind: "Net", Deleting: true, Limit: 7}} {
					r.Shard = shard + 1
					var got []string
					for {
						page := f.list(r)
						for _, one := range page.Resources {
							got = append(got, one.Namespace)
						}
						if !page.More {
							break
						}
						last := page.Resources[len(page.Resources)-1]
						r.Start = backend.Successor(backend.OrderTuple(last.Namespace, last.Name))
					}
					equal(f, got, want[shard])
				}
				for _, deleting := range []bool{false, true} {
					count := f.list(backend.Range{Kind: "Net", Deleting: deleting, Shard: shard + 1, Count: true})
					equal(f, count.Count, len(want[shard]))
				}
			}
			target := key("t")
			for _, r := range []backend.Range{
				{Kind: "Net", Limit: 1, Shard: -1}, {Kind: "Net", Limit: 1, Shard: shards + 1},
				{Kind: "Net", Limit: 1, Shard: 1, Namespace: "a"}, {Referenced: &target, Limit: 1, Shard: 1},
			} {
				_, err := f.Range(f.ctx(), r)
				f.wantErr(err, backend.ErrInvalid)
				_, err = f.ranges(f.ctx(), []backend.Range{r})
				f.wantErr(err, backend.ErrInvalid)
			}
		}},
		{"one range that is invalid fails all", func(f *fixture) {
			f.start()
			_, err := f.ranges(f.ctx(), []backend.Range{{Kind: "Net", Limit: 1}, {Kind: "Net"}})
			f.wantErr(err, backend.ErrInvalid)
		}},
		{"the pages share their bytes, and each has its first resource", func(f *fixture) {
			f.start()
			for i := range 5 {
				f.must(sized(key(fmt.Sprint("n", i)), backend.MaxPageBytes/8-1024))
			}
			r := backend.Range{Kind: "Net", Limit: 10}
			got, err := f.ranges(f.ctx(), []backend.Range{r, r, r})
			f.wantErr(err, nil)
			for i, n := range []int{5, 3, 1} {
				equal(f, len(got[i].Resources), n)
				equal(f, got[i].More, n < 5)
			}
		}},
		{"all ranges of a call see one state", func(f *fixture) {
			f.start()
			f.must(deleting(put(key("a"), "0")))
			workers(3, func(w int) {
				for i := range 60 {
					v := fmt.Sprint(i)
					if w == 0 {
						if _, err := f.applyAs(f.Store, w, i, deleting(put(key("a"), v))); err != nil {
							f.Error(err)
						}
						continue
					}
					got, err := f.ranges(
						f.ctx(), []backend.Range{{Kind: "Net", Limit: 1}, {Kind: "Net", Deleting: true, Limit: 1}},
					)
					if err != nil || got[0].Resources[0].Revision != got[1].Resources[0].Revision {
						f.Errorf("%v, error %v", got, err)
						return
					}
				}
			})
		}},
		{"ranges whose context has ended fail with its error, and those of a closed store with ErrClosed", func(f *fixture) {
			f.start()
			ctx, cancel := context.WithCancel(f.ctx())
			cancel()
			_, err := f.ranges(ctx, []backend.Range{{Kind: "Net", Limit: 1}})
			f.wantErr(err, context.Canceled)
			closed := f.in.Handle(f.Store)
			f.wantErr(closed.Close(), nil)
			_, err = closed.(backend.Ranger).Ranges(f.ctx(), nil)
			f.wantErr(err, backend.ErrClosed)
		}},
	}
}
