package redis

import (
	"bytes"
	"context"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/sluicegw/sluice/backend"
)

// Bounds of one scan.
const (
	// scanPrefetch is the most members whose resources are read before they are
	// asked for, and scanBytes what they may take, as far as it can be guessed.
	scanPrefetch = 4096
	scanBytes    = 2 * backend.MaxPageBytes
	// scanLeast are read at once whatever they may take.
	scanLeast = 16
	// scanChunk is the number of members read at a time after the first.
	scanChunk = 512
	// expiredAhead is how far the server's clock may be ahead of what the gateway takes it for.
	expiredAhead = time.Second
)

// scanner answers the ranges of one call.
type scanner struct {
	store   *Store
	session *session
	now     time.Time
	names   names
	// records are those read so far, by key; what is absent is empty.
	records map[backend.Key]string
	// expired are the keys that are due to be purged, by shard.
	expired map[int][]backend.Key
	// moved says that a resource had no more the row that led to it.
	moved bool
	// last says that this is the last try.
	last bool
}

// run is the part of a range that lies in one shard, in the order of the scan.
type run struct {
	of      *backend.Range
	shard   *shard
	lo, hi  string // as ZRANGE BYLEX has them
	reverse bool
	members []found
	more    bool // the index may have members after these
	count   *goredis.IntCmd
	page    *goredis.StringSliceCmd
}

// scan answers all ranges: the members of the first page of each, and the
// counts, from one state of each shard.
func (sc *scanner) scan(ctx context.Context, rs []backend.Range) ([]backend.Page, error) {
	runs, err := sc.first(ctx, rs)
	if err != nil {
		return nil, err
	}
	sc.records = map[backend.Key]string{}
	fetch := sc.prefetch
	if sc.last {
		fetch = sc.freeze
	}
	if err := fetch(ctx, rs, runs); err != nil {
		return nil, err
	}
	pages := make([]backend.Page, len(rs))
	b := backend.NewPageBuilder(backend.Range{}, sc.now)
	for i, r := range rs {
		b = b.Next(r)
		if r.Count {
			if pages[i].Count, err = sc.count(ctx, r, runs[i]); err != nil {
				return nil, err
			}
			continue
		}
		if err := sc.page(ctx, r, runs[i], b); err != nil {
			return nil, err
		}
		pages[i] = b.Page()
	}
	return pages, nil
}

// memberType is the first byte of the members that a range is made of.
func memberType(r backend.Range) byte {
	switch {
	case r.Referenced != nil:
		return entryRef
	case r.Index != "":
		return entryRow
	}
	return memberName
}

// counted says whether a count needs no look at the members. Only names are
// ordered by namespace.
func counted(r backend.Range) bool {
	return r.Count && (r.Namespace == "" || r.Index == "" && r.Referenced == nil)
}

// shards of a range.
func (sc *scanner) shards(r backend.Range) []shard {
	all := sc.store.core.shards
	switch {
	case r.Referenced != nil:
		n := sc.store.Shard(r.Referenced.Namespace)
		return all[n : n+1]
	case r.Namespace != "":
		n := sc.store.Shard(r.Namespace)
		return all[n : n+1]
	}
	return all
}

// first asks for the first members of all ranges and what is expired.
func (sc *scanner) first(ctx context.Context, rs []backend.Range) ([][]*run, error) {
	s := sc.store
	x := s.exchange(sc.session, len(rs) == 1 && !rs[0].Count)
	clock := s.askTime(ctx, x.on(0))
	due := map[int]*goredis.StringSliceCmd{}
	runs := make([][]*run, len(rs))
	for i, r := range rs {
		start, end := r.Bounds()
		kind := string(memberType(r))
		shards := sc.shards(r)
		for j := range shards {
			n := &run{of: &rs[i], shard: &shards[j], lo: "[" + kind + string(start), hi: "(" + kind + string(end), reverse: r.Reverse}
			runs[i] = append(runs[i], n)
			pipe := x.on(n.shard.index)
			switch {
			case counted(r):
				n.count = pipe.ZLexCount(ctx, n.shard.rows, n.lo, n.hi)
				if due[n.shard.index] == nil {
					end := string(entryExpiry) + string(backend.AppendInt(nil, s.core.now().Add(expiredAhead).UnixMilli()+1))
					due[n.shard.index] = pipe.ZRangeArgs(ctx, goredis.ZRangeArgs{Key: n.shard.rows, ByLex: true, Start: "[" + string(entryExpiry), Stop: "(" + end})
				}
			case r.Count:
				n.page = pipe.ZRangeArgs(ctx, n.args(scanChunk))
			default:
				n.page = pipe.ZRangeArgs(ctx, n.args(r.Limit+1))
			}
		}
	}
	asked := time.Now()
	if err := x.run(ctx); err != nil {
		return nil, err
	}
	sc.now = s.tellTime(clock, asked)
	for i, r := range rs {
		for _, n := range runs[i] {
			if n.page != nil {
				want := r.Limit + 1
				if r.Count {
					want = scanChunk
				}
				sc.take(n, n.page.Val(), want)
			}
		}
	}
	sc.expired = map[int][]backend.Key{}
	for shard, cmd := range due {
		for _, m := range cmd.Val() {
			if at, key, err := expiryMember(m); err == nil && !at.After(sc.now) {
				sc.expired[shard] = append(sc.expired[shard], key)
			}
		}
	}
	return runs, nil
}

func (n *run) args(count int) goredis.ZRangeArgs {
	from, to := n.lo, n.hi
	if n.reverse {
		from, to = to, from
	}
	return goredis.ZRangeArgs{Key: n.shard.rows, ByLex: true, Rev: n.reverse, Start: from, Stop: to, Count: int64(count)}
}

// take notes the members that were read, of as many as wanted.
func (sc *scanner) take(n *run, members []string, wanted int) {
	n.members, n.more = make([]found, len(members)), len(members) == wanted
	for i, m := range members {
		n.members[i] = sc.names.find(n.of, m)
	}
	if len(members) > 0 {
		if last := "(" + members[len(members)-1]; n.reverse {
			n.hi = last
		} else {
			n.lo = last
		}
	}
}

// next removes the first member of all runs, in the order of the range.
func (sc *scanner) next(ctx context.Context, runs []*run) (f found, ok bool, err error) {
	var least *run
	for _, n := range runs {
		if len(n.members) == 0 && n.more {
			members, err := sc.session.client.ZRangeArgs(ctx, n.args(scanChunk)).Result()
			if err != nil {
				return f, false, err
			}
			sc.take(n, members, scanChunk)
		}
		if len(n.members) == 0 {
			continue
		}
		if least == nil || (n.members[0].text < least.members[0].text) != n.reverse {
			least = n
		}
	}
	if least == nil {
		return f, false, nil
	}
	f, least.members = least.members[0], least.members[1:]
	return f, true, nil
}

// prefetch reads the resources of the first members of all ranges at once, those
// too that only say whether there is more.
func (sc *scanner) prefetch(ctx context.Context, rs []backend.Range, runs [][]*run) error {
	n := 0
	for i := range rs {
		for _, run := range runs[i] {
			n += len(run.members)
		}
	}
	n = min(n, sc.store.core.typical.fit())
	keys, seen := make([]backend.Key, 0, n), make(map[backend.Key]bool, n)
	sc.records = make(map[backend.Key]string, n)
	for i, r := range rs {
		if r.Count {
			continue
		}
		for _, n := range runs[i] {
			for _, m := range n.members {
				if k := m.key; m.err == nil && !seen[k] && len(keys) < cap(keys) && (r.Namespace == "" || r.Namespace == k.Namespace) {
					seen[k] = true
					keys = append(keys, k)
				}
			}
		}
	}
	return sc.load(ctx, keys)
}

func (sc *scanner) load(ctx context.Context, keys []backend.Key) error {
	if len(keys) == 0 {
		return nil
	}
	records, _, err := sc.store.load(ctx, sc.session, keys)
	bytes := 0
	for i, record := range records {
		sc.records[keys[i]] = record
		bytes += len(record)
	}
	sc.store.core.typical.note(bytes, len(records))
	return err
}

// resource reads the resource that a member leads to; nil if it leads to none any more.
func (sc *scanner) resource(ctx context.Context, r backend.Range, f found, runs []*run) (*backend.Resource, error) {
	k := f.key
	if f.err != nil {
		sc.store.core.skip("range", k, f.err)
		return nil, nil
	}
	if r.Namespace != "" && k.Namespace != r.Namespace {
		return nil, nil
	}
	if _, known := sc.records[k]; !known {
		// What follows will be asked for next.
		keys := []backend.Key{k}
		for _, n := range runs {
			for _, m := range n.members[:min(len(n.members), loadChunk, sc.store.core.typical.fit())] {
				if m.err == nil && (r.Namespace == "" || m.key.Namespace == r.Namespace) {
					keys = append(keys, m.key)
				}
			}
		}
		if err := sc.load(ctx, keys); err != nil {
			return nil, err
		}
	}
	record := sc.records[k]
	if record == "" {
		sc.moved = true
		return nil, nil
	}
	out, err := sc.names.record(k, record)
	if err != nil {
		sc.store.core.skip("range", k, err)
		return nil, nil
	}
	if !f.leads(record) {
		sc.moved = true
		return nil, nil
	}
	return out, nil
}

// page adds resources until the page is full or the range ends.
func (sc *scanner) page(ctx context.Context, r backend.Range, runs []*run, b *backend.PageBuilder) error {
	for {
		m, ok, err := sc.next(ctx, runs)
		if err != nil || !ok {
			return err
		}
		out, err := sc.resource(ctx, r, m, runs)
		if err != nil {
			return err
		}
		if out != nil && !b.Add(out) {
			return nil
		}
		if sc.moved && !sc.last {
			return nil // all is read again
		}
	}
}

// count is the number of live resources in a range.
func (sc *scanner) count(ctx context.Context, r backend.Range, runs []*run) (int, error) {
	if !counted(r) {
		n := 0
		for {
			m, ok, err := sc.next(ctx, runs)
			if err != nil || !ok {
				return n, err
			}
			out, err := sc.resource(ctx, r, m, runs)
			if err != nil {
				return 0, err
			}
			if out != nil && !out.ExpiredAt(sc.now) {
				n++
			}
		}
	}
	n := 0
	for _, part := range runs {
		n += int(part.count.Val())
		gone, err := sc.countExpired(ctx, part)
		if err != nil {
			return 0, err
		}
		n -= gone
	}
	return n, nil
}

// countExpired is the number of members in a run that lead to what is expired.
func (sc *scanner) countExpired(ctx context.Context, part *run) (int, error) {
	keys := sc.expired[part.shard.index]
	if len(keys) == 0 {
		return 0, nil
	}
	within := func(m []byte) bool {
		return bytes.Compare(m, []byte(part.lo[1:])) >= 0 && bytes.Compare(m, []byte(part.hi[1:])) < 0
	}
	n := 0
	for from := 0; from < len(keys); from += loadChunk {
		chunk := keys[from:min(from+loadChunk, len(keys))]
		if err := sc.load(ctx, chunk); err != nil {
			return 0, err
		}
		for _, k := range chunk {
			if sc.records[k] == "" {
				sc.moved = true // purged since it was counted
				continue
			}
			out, err := decodeRecord(k, sc.records[k])
			if err != nil {
				continue
			}
			for _, m := range membersOf(out) {
				if within(m) {
					n++
				}
			}
		}
	}
	return n, nil
}
