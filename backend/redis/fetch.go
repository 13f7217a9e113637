package redis

import (
	"context"

	"github.com/sluicegw/sluice/backend"
)

// upcoming visits the next members of a range, in the order of the range across all shards, and returns the keys whose
// records were not read yet. most is the maximum number of members to visit.
func (sc *scanner) upcoming(runs []*shardRange, most int) []backend.Key {
	rest := make(map[*shardRange][]found, len(runs))
	for _, n := range runs {
		rest[n] = n.members
	}
	var keys []backend.Key
	for range most {
		n := leading(runs, func(n *shardRange) []found { return rest[n] })
		if n == nil {
			break
		}
		m := rest[n][0]
		if _, known := sc.records[m.key]; !known && m.err == nil {
			keys = append(keys, m.key)
		}
		rest[n] = rest[n][1:]
		if len(rest[n]) == 0 && n.more {
			break // the next member may be one of this run that was not read yet
		}
	}
	return keys
}

// prefetch reads the resources of all pages at once, as far as there is room in one call. For each page it reads one
// more resource, which shows whether others follow.
func (sc *scanner) prefetch(ctx context.Context) error {
	var keys []backend.Key
	seen := map[backend.Key]bool{}
	for i := range sc.ranges {
		r := &sc.ranges[i]
		if r.Count || len(keys) >= scanPrefetch {
			continue
		}
		for _, k := range sc.upcoming(sc.runs[i], r.Limit+1) {
			if !seen[k] {
				seen[k] = true
				keys = append(keys, k)
			}
		}
	}
	return sc.fetch(ctx, keys)
}

// fetch reads the records of the first keys, as far as there is room in one call.
func (sc *scanner) fetch(ctx context.Context, keys []backend.Key) error {
	if len(keys) == 0 {
		return nil
	}
	if sc.held > backend.MaxPageBytes {
		// Records that were read in advance for other ranges are dropped, and read again when they are needed.
		clear(sc.records)
		sc.held = 0
	}
	sc.room = max(backend.MaxPageBytes-sc.used, 1)
	records, err := sc.load(ctx, keys[:min(len(keys), scanPrefetch)])
	for i, record := range records {
		sc.records[keys[i]] = record
		sc.held += len(record)
	}
	return err
}

// skip counts and logs a resource that cannot be decoded, and adds its key to the page.
func (sc *scanner) skip(k backend.Key, err error) {
	sc.store.core.skip("range", k, err)
	sc.built.Skip(k)
}

// resource returns the resource of a member; nil if it has expired or does not exist. most is how many more resources
// the range wants.
func (sc *scanner) resource(
	ctx context.Context, r *backend.Range, f found, runs []*shardRange, most int,
) (*backend.Resource, error) {
	k := f.key
	if f.err != nil {
		sc.skip(k, f.err)
		return nil, nil
	}
	if r.Referenced != nil && r.Namespace != "" && k.Namespace != r.Namespace {
		return nil, nil
	}
	if _, known := sc.records[k]; !known {
		if err := sc.fetch(ctx, append([]backend.Key{k}, sc.upcoming(runs, most-1)...)); err != nil {
			return nil, err
		}
	}
	record := sc.records[k]
	if record == "" {
		sc.moved = !sc.last
		return nil, nil
	}
	decode := decodeRecord
	switch {
	case r.KeysOnly:
		decode = recordHead
	case r.Bare:
		decode = bareRecord
	}
	out, err := decode(k, record)
	if err != nil {
		sc.skip(k, err)
		return nil, nil
	}
	if !f.matches(record) {
		sc.moved = !sc.last
		return nil, nil
	}
	if out.ExpiredAt(sc.time(ctx, k)) {
		return nil, nil
	}
	return out, nil
}

// freeze is the first step of the last try, and of every try if heads is set. It reads the counts by calling begin.
// Then, in each shard, a single script reads the members of all other ranges and their resources.
func (sc *scanner) freeze(ctx context.Context) error {
	if err := sc.begin(ctx); err != nil {
		return err
	}
	byShard := map[*shard][]*shardRange{}
	args := map[*shard][]any{}
	for _, runs := range sc.runs {
		for _, n := range runs {
			if n.of.Count {
				continue
			}
			rev := ""
			if n.reverse {
				rev = "rev"
			}
			a := n.args(n.first.from, n.first.to, 0)
			byShard[n.shard] = append(byShard[n.shard], n)
			args[n.shard] = append(args[n.shard], a.Start, a.Stop, rev, n.first.want, n.prefix)
		}
	}
	for sh, all := range byShard {
		first := []any{sh.item, backend.MaxPageBytes, ""}
		if sc.heads {
			first[2] = headBytes
		}
		reply, err := sc.store.core.scripts.ranges.run(
			ctx, sc.session.client, []string{sh.members}, append(first, args[sh]...)...,
		)
		if err != nil {
			return err
		}
		for i, n := range all {
			n.lo = n.first.from
			n.hi = n.first.to
			n.first.members = texts(reply[i])
			sc.take(n, n.first.members, len(n.first.members) == n.first.want)
		}
		records := texts(reply[len(all)])
		for i := 0; i+1 < len(records); i += 2 {
			if k, err := backend.DecodeKey([]byte(records[i])); err == nil {
				sc.records[k] = records[i+1]
				sc.held += len(records[i+1])
			}
		}
	}
	return nil
}

// texts converts a list of strings in the answer of a script.
func texts(v any) []string {
	list, _ := v.([]any)
	out := make([]string, len(list))
	for i := range list {
		out[i], _ = list[i].(string)
	}
	return out
}
