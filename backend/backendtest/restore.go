package backendtest

import (
	"fmt"
	"slices"
	"time"

	"github.com/sluicegw/sluice/backend"
)

// dated returns the put with the times of a resource that comes from another store.
func dated(a backend.Action, createdAt, updatedAt time.Time) backend.Action {
	a.Put.CreatedAt, a.Put.UpdatedAt = createdAt, updatedAt
	return a
}

// restoreStatements are about reading everything of a store, and about putting it into another one.
func restoreStatements() []statement {
	return []statement{
		{"a range without a kind has everything of a shard, internal records too, in the order of the keys", func(f *fixture) {
			f.start()
			shards, of := f.position().Shards(), func(string) int { return 0 }
			if s, ok := f.Store.(backend.Sharder); ok {
				of = s.Shard
			}
			want := make([][]backend.Key, shards)
			for _, kind := range []string{"Net", "Net\x00", "N", "_lease", "\xff"} {
				for i := range 12 {
					namespace := ""
					if i > 0 {
						namespace = fmt.Sprintf("ns-%02d", i)
					}
					k := backend.Key{Kind: kind, Namespace: namespace, Name: "n\x00"}
					f.must(create(k, "1"))
					want[of(namespace)] = append(want[of(namespace)], k)
				}
			}
			for i, keys := range want {
				slices.SortFunc(keys, func(a, b backend.Key) int {
					return slices.Compare(a.Append(nil), b.Append(nil))
				})
				equal(f, keysOf(f, backend.Range{Shard: i + 1, Limit: 3}), keys)
				equal(f, keysOf(f, backend.Range{Shard: i + 1, Limit: 3, KeysOnly: true}), keys)
				equal(f, f.list(backend.Range{Shard: i + 1, Count: true}).Count, len(keys))
				if len(keys) < 4 {
					continue
				}
				part := backend.Range{Shard: i + 1, Limit: 3}
				part.Start = keys[1].Append(nil)
				part.End = keys[len(keys)-1].Append(nil)
				equal(f, keysOf(f, part), keys[1:len(keys)-1])
			}
		}},
		{"a range without a kind leaves out what is expired", func(f *fixture) {
			f.start()
			f.must(expiring(create(key("a"), "1"), f.clock.Now().Add(time.Second)), create(key("b"), "1"))
			f.clock.Advance(time.Second)
			equal(f, keysOf(f, backend.Range{Shard: f.shard() + 1, Limit: 5}), []backend.Key{key("b")})
		}},
		{"a range without a kind reads one shard", func(f *fixture) {
			f.start()
			for _, r := range []backend.Range{
				{Limit: 1}, {Limit: 1, Namespace: "a"}, {Limit: 1, Namespace: "a", Shard: 1}, {Limit: 1, Deleting: true},
			} {
				_, err := f.Range(f.ctx(), r)
				f.wantErr(err, backend.ErrInvalid)
			}
		}},
		{"a put can give the times of a resource that comes from another store", func(f *fixture) {
			f.start()
			createdAt := time.Date(2019, 5, 1, 10, 0, 0, 123_456_789, time.FixedZone("", 3600))
			updatedAt := createdAt.Add(time.Hour)
			from := f.position()
			res := f.must(finalized(deleting(dated(create(key("a"), "1"), createdAt, updatedAt)), 2))
			got := f.get(key("a"))
			equal(f, got, res.Resources[0])
			equal(f, got.CreatedAt, createdAt.UTC().Truncate(time.Millisecond))
			equal(f, got.UpdatedAt, updatedAt.UTC().Truncate(time.Millisecond))
			equal(f, got.Revision, f.own(f.position()))
			events := f.replay(from)
			equal(f, summary(events), []string{"ADDED a"})
			equal(f, events[0].Resource, got)
			equal(f, events[0].Time, f.clock.Now().Truncate(time.Millisecond))
			f.clock.Advance(time.Minute)
			f.must(put(key("a"), "2"))
			got = f.get(key("a"))
			equal(f, got.CreatedAt, createdAt.UTC().Truncate(time.Millisecond))
			equal(f, got.UpdatedAt, f.clock.Now().Truncate(time.Millisecond))
		}},
		{"times are given in the place of an expired resource, too", func(f *fixture) {
			f.start()
			f.must(expiring(create(key("a"), "1"), f.clock.Now().Add(time.Second)))
			f.clock.Advance(time.Second)
			at := f.clock.Now().Add(-time.Hour).Truncate(time.Millisecond)
			f.must(dated(create(key("a"), "2"), at, at))
			equal(f, f.get(key("a")).CreatedAt, at)
		}},
		{"times are given together, for a key that has to be absent, in years that can be stored", func(f *fixture) {
			f.start()
			at := f.clock.Now()
			for _, a := range []backend.Action{
				dated(put(key("a"), "1"), at, at),
				dated(create(key("a"), "1"), at, time.Time{}),
				dated(create(key("a"), "1"), time.Time{}, at),
				dated(create(key("a"), "1"), time.Date(1969, 1, 1, 0, 0, 0, 0, time.UTC), at),
				dated(create(key("a"), "1"), at, time.Date(10000, 1, 2, 0, 0, 0, 0, time.UTC)),
			} {
				_, err := f.apply(a)
				f.wantErr(err, backend.ErrInvalid)
			}
			f.must(create(key("a"), "1"))
			f.refuse(0, backend.ErrExists, dated(create(key("a"), "2"), at, at))
		}},
	}
}

func keysOf(f *fixture, r backend.Range) (keys []backend.Key) {
	f.Helper()
	for page, err := range backend.Pages(f.ctx(), f.Store, r) {
		f.wantErr(err, nil)
		for _, one := range page.Resources {
			keys = append(keys, one.Key)
		}
	}
	return keys
}
