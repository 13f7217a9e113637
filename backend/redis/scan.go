package redis

import (
	"context"
	"fmt"
	"slices"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/storekit"
)

// Limits of a scan.
const (
	// scanPrefetch is the maximum number of resources that are read in advance.
	scanPrefetch = 4096
	// scanChunk is how many members the first try reads at a time if it is not known how many are needed. Later tries
	// read more.
	scanChunk = 512
)

// scanner answers the ranges of one call. It divides each range into runs, whose members it reads in steps. If
// something changes between two steps, another scanner tries again; see scanTries.
type scanner struct {
	loader
	ranges []backend.Range
	// deep is the set of ranges for which a try had to read further members, because many belonged to expired
	// resources. The next try reads more members of these ranges in its first step.
	deep map[*backend.Range]bool
	// runs has the runs of each range, parallel to ranges.
	runs [][]*shardRange
	// records maps a key to its record, or to "" if there is none. held is the total size of the records.
	records map[backend.Key]string
	held    int
	// used is the size of the resources that are on pages already.
	used int
	// moved reports that something has changed between two steps, so that everything must be read again.
	moved bool
	// chunk is the number of members that are read at a time.
	chunk int
	// heads reports whether only the first headBytes of each record are needed.
	heads bool
	// last reports whether this is the last try.
	last bool
	// built is the page that is being built.
	built *storekit.PageBuilder
}

// shardRange is a run: the part of a range in one shard. For references to a key, the bound references and the others
// are separate runs.
type shardRange struct {
	of      *backend.Range
	shard   *shard
	lo, hi  string // bounds of the unread part, for ZRANGE BYLEX
	reverse bool
	// prefix is the number of bytes before the tuple of the key in a member.
	prefix  int
	members []found
	more    bool // the index may have members after these
	// first is the result of the first step.
	first reading
}

// reading is the part of a run that the first step reads.
type reading struct {
	from, to string
	want     int
	members  []string
	// count is the number of members, and due the number of expired resources of the kind. For a range that the server
	// counts, nothing else is read.
	count, due int
}

// readingCommands has the commands of a reading. They are answered when the pipeline has run.
type readingCommands struct {
	page       *goredis.StringSliceCmd
	count, due *goredis.IntCmd
}

func newScanner(s *Store, ses *session, ranges []backend.Range, deep map[*backend.Range]bool, try int) *scanner {
	return &scanner{
		loader: loader{store: s, session: ses, room: backend.MaxPageBytes}, heads: !slices.ContainsFunc(
			ranges, func(r backend.Range) bool { return !r.KeysOnly },
		), ranges: ranges, deep: deep,
		records: map[backend.Key]string{}, chunk: scanChunk << (4 * (try - 1)), last: try == scanTries,
	}
}

// scan reads all ranges. The members for the first page of each range, and the counts, are read from one state of each
// shard.
func (sc *scanner) scan(ctx context.Context) ([]backend.Page, error) {
	begin := sc.begin
	if sc.last || sc.heads {
		begin = sc.freeze
	}
	if err := begin(ctx); err != nil {
		return nil, err
	}
	if err := sc.prefetch(ctx); err != nil {
		return nil, err
	}
	pages := make([]backend.Page, len(sc.ranges))
	// The scanner itself leaves out expired resources, because shards have different clocks.
	sc.built = storekit.NewPageBuilder(time.Time{})
	for i := range sc.ranges {
		r, runs := &sc.ranges[i], sc.runs[i]
		sc.built.Next(*r)
		var counted int
		var err error
		if serverCounts(r) {
			counted, err = sc.count(ctx, r, runs)
		} else {
			err = sc.page(ctx, r, runs)
		}
		if err != nil || sc.moved {
			return nil, err
		}
		pages[i] = sc.built.Page()
		pages[i].Count += counted
	}
	return pages, nil
}

// serverCounts reports whether the server can count the resources in a range.
func serverCounts(r *backend.Range) bool { return r.Count && r.Kind != "" }

// shards returns the shards in which a range may have resources.
func (sc *scanner) shards(r *backend.Range) []shard {
	all := sc.store.core.shards
	switch {
	case r.Referenced != nil && r.Namespace != "" && !r.MayRefer(r.Namespace):
		return nil
	case r.Referenced != nil && r.Referenced.Namespace != "":
		n := sc.store.Shard(r.Referenced.Namespace)
		return all[n : n+1]
	case r.Namespace != "":
		n := sc.store.Shard(r.Namespace)
		return all[n : n+1]
	case r.Shard > 0:
		return all[r.Shard-1 : r.Shard]
	}
	return all
}

// split divides all ranges into runs.
func (sc *scanner) split() {
	sc.runs = make([][]*shardRange, len(sc.ranges))
	for i := range sc.ranges {
		r := &sc.ranges[i]
		shards := sc.shards(r)
		for j := range shards {
			switch {
			case r.Referenced != nil:
				bound, others := *r, *r
				bound.BoundOnly, others.BoundOnly = true, false
				sc.runs[i] = append(sc.runs[i], sc.run(r, &shards[j], memberRef, bound))
				if !r.BoundOnly {
					sc.runs[i] = append(sc.runs[i], sc.run(r, &shards[j], memberRef, others))
				}
			case r.Deleting:
				sc.runs[i] = append(sc.runs[i], sc.run(r, &shards[j], memberDeleting, *r))
			default:
				sc.runs[i] = append(sc.runs[i], sc.run(r, &shards[j], memberName, *r))
			}
		}
	}
}

// run returns the part of a range in a shard: the members of a type, within the bounds of part.
func (sc *scanner) run(of *backend.Range, sh *shard, members byte, part backend.Range) *shardRange {
	start, end := part.Bounds()
	n := &shardRange{
		of:      of,
		shard:   sh,
		lo:      "[" + string(members) + string(start),
		hi:      "(" + string(members) + string(end),
		reverse: of.Reverse,
		prefix:  1,
	}
	if of.Referenced != nil {
		n.prefix += len(part.Prefix())
	}
	n.first = reading{from: n.lo, to: n.hi, want: of.Limit + 1}
	if of.Count || sc.deep[of] {
		n.first.want = max(n.first.want, sc.chunk)
	}
	return n
}

// begin is the first step. It reads the first members of all ranges, and counts.
func (sc *scanner) begin(ctx context.Context) error {
	sc.split()
	s := sc.store
	x := s.exchange(sc.session)
	clock := s.askTime(ctx, x.on(0))
	largest := map[int]*goredis.StringCmd{}
	readings := make([][]readingCommands, len(sc.runs))
	for i, runs := range sc.runs {
		for _, n := range runs {
			pipe := x.on(n.shard.index)
			readings[i] = append(readings[i], sc.ask(ctx, pipe, n))
			if largest[n.shard.index] == nil {
				largest[n.shard.index] = askLargest(ctx, pipe, n.shard)
			}
		}
	}
	since := time.Now()
	if err := x.run(ctx); err != nil {
		return err
	}
	sc.clock = s.noteTime(clock, since)
	for _, cmd := range largest {
		sc.noteLargest(cmd)
	}
	for i, runs := range sc.runs {
		for j, n := range runs {
			readings[i][j].readInto(&n.first)
			sc.take(n, n.first.members, len(n.first.members) == n.first.want)
		}
	}
	return nil
}

// ask adds the commands of the first step for a run.
func (sc *scanner) ask(ctx context.Context, pipe goredis.Pipeliner, n *shardRange) (a readingCommands) {
	if !serverCounts(n.of) {
		a.page = pipe.ZRangeArgs(ctx, n.args(n.first.from, n.first.to, n.first.want))
		return a
	}
	a.count = pipe.ZLexCount(ctx, n.shard.members, n.first.from, n.first.to)
	lo, hi := dueBounds(n.of.Kind, sc.shardTime(ctx, n.shard))
	a.due = pipe.ZLexCount(ctx, n.shard.members, lo, hi)
	return a
}

// readInto stores the answers to the commands of a in s.
func (a readingCommands) readInto(s *reading) {
	if a.page != nil {
		s.members = a.page.Val()
		return
	}
	s.count, s.due = int(a.count.Val()), int(a.due.Val())
}

func (n *shardRange) args(lo, hi string, count int) goredis.ZRangeArgs {
	if n.reverse {
		lo, hi = hi, lo
	}
	return goredis.ZRangeArgs{
		Key:   n.shard.members,
		ByLex: true,
		Rev:   n.reverse,
		Start: lo,
		Stop:  hi,
		Count: int64(count),
	}
}

// take sets the members of a run to members, which were just read, and moves the start of the unread part past them.
// more reports whether the index may have further members.
func (sc *scanner) take(n *shardRange, members []string, more bool) {
	n.members, n.more = make([]found, len(members)), more
	for i, m := range members {
		n.members[i] = find(n.prefix, m)
	}
	if len(members) > 0 {
		n.pass(members[len(members)-1])
	}
}

// pass moves the start of the unread part past a member.
func (n *shardRange) pass(member string) {
	if n.reverse {
		n.hi = "(" + member
	} else {
		n.lo = "(" + member
	}
}

// further reads the next members of a run. To make sure that they are from the same state as the first step, it repeats
// the first step for the other runs in the shard, in the same transaction. If one of these has changed, the scan starts
// again.
func (sc *scanner) further(ctx context.Context, n *shardRange) error {
	x := sc.store.exchange(sc.session)
	sc.deep[n.of] = true
	pipe := x.on(n.shard.index)
	next := pipe.ZRangeArgs(ctx, n.args(n.lo, n.hi, sc.chunk))
	var others []*shardRange
	var readings []readingCommands
	for _, runs := range sc.runs {
		for _, o := range runs {
			if o != n && o.shard == n.shard {
				others, readings = append(others, o), append(readings, sc.ask(ctx, pipe, o))
			}
		}
	}
	if err := x.run(ctx); err != nil {
		return err
	}
	for i, o := range others {
		now := o.first
		readings[i].readInto(&now)
		if now.count != o.first.count || now.due != o.first.due || !slices.Equal(now.members, o.first.members) {
			return sc.changed()
		}
	}
	members := next.Val()
	sc.take(n, members, len(members) == sc.chunk)
	return nil
}

// changed makes the scan start again. On the last try it returns an error.
func (sc *scanner) changed() error {
	if sc.last {
		return fmt.Errorf("range: the index changes faster than it can be read: %w", backend.ErrUnavailable)
	}
	sc.moved = true
	return nil
}

// next removes and returns the member that is next in the order of the range, from all runs.
func (sc *scanner) next(ctx context.Context, runs []*shardRange) (f found, ok bool, err error) {
	for _, n := range runs {
		if len(n.members) == 0 && n.more {
			if err := sc.further(ctx, n); err != nil || sc.moved {
				return f, false, err
			}
		}
	}
	least := leading(runs, func(n *shardRange) []found { return n.members })
	if least == nil {
		return f, false, nil
	}
	f, least.members = least.members[0], least.members[1:]
	return f, true, nil
}

// leading returns the run whose first member is next in the order of the range; nil if no run has members.
func leading(runs []*shardRange, members func(*shardRange) []found) (least *shardRange) {
	var first string
	for _, n := range runs {
		if m := members(n); len(m) > 0 && (least == nil || (m[0].order < first) != n.reverse) {
			least, first = n, m[0].order
		}
	}
	return least
}

// page adds resources to the page until it is full or the range has ended. For a count, the page is never full.
func (sc *scanner) page(ctx context.Context, r *backend.Range, runs []*shardRange) error {
	wanted := r.Limit + 1
	if r.Count {
		wanted = countWalk
	}
	for {
		m, ok, err := sc.next(ctx, runs)
		if err != nil || !ok || sc.moved {
			return err
		}
		out, err := sc.resource(ctx, r, m, runs, wanted)
		if err != nil || sc.moved {
			return err
		}
		if out == nil {
			continue
		}
		if !sc.built.Add(out) {
			return nil
		}
		if !r.Count { // counted resources take no room
			wanted--
			sc.used += out.Size()
		}
	}
}
