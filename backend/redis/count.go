package redis

import (
	"context"

	goredis "github.com/redis/go-redis/v9"

	"github.com/sluicegw/sluice/backend"
)

// countWalk is how many records a count reads in advance.
const countWalk = 1024

// count returns the number of resources in a range that the server can count: the number of members minus the members
// of expired resources. If no resource of the kind is waiting to be purged, it reads neither members nor records. If
// it must read the resources of a run, the page that is being built counts them, and total does not include them.
func (sc *scanner) count(ctx context.Context, r *backend.Range, runs []*shardRange) (total int, err error) {
	byName := r.Referenced == nil && !r.Deleting
	whole := byName && r.Namespace == "" && r.Start == nil && r.End == nil
	for _, n := range runs {
		live := n.first.count
		switch {
		case n.first.due == 0 || live == 0:
		case whole:
			live -= n.first.due
		case !byName || n.first.due > live || sc.last:
			n.more, live = true, 0
			err = sc.page(ctx, r, []*shardRange{n})
		default:
			var gone int
			gone, err = sc.countDue(ctx, r, n)
			live -= gone
		}
		total += live
		if err != nil || sc.moved {
			return 0, err
		}
	}
	return total, nil
}

// countDue returns the number of expired resources in a run that is ordered by name. It reads the expiry members of
// the kind.
func (sc *scanner) countDue(ctx context.Context, r *backend.Range, n *shardRange) (gone int, err error) {
	lo, hi := dueBounds(r.Kind, sc.shardTime(ctx, n.shard))
	from := lo
	for {
		x := sc.store.exchange(sc.session)
		pipe := x.on(n.shard.index)
		page := pipe.ZRangeArgs(
			ctx, goredis.ZRangeArgs{Key: n.shard.members, ByLex: true, Start: from, Stop: hi, Count: scanChunk},
		)
		again := sc.ask(ctx, pipe, n)
		if err := x.run(ctx); err != nil {
			return 0, err
		}
		now := n.first
		if again.readInto(&now); now.count != n.first.count || now.due != n.first.due {
			return 0, sc.changed()
		}
		for _, m := range page.Val() {
			if k, err := expiryMember(m); err != nil {
				sc.store.core.skip("count", k, err)
			} else if n.contains(string(k.Append([]byte{memberName}))) {
				gone++
			}
			from = "(" + m
		}
		if len(page.Val()) < scanChunk {
			return gone, nil
		}
	}
}

// contains reports whether a member lies in the run.
func (n *shardRange) contains(m string) bool { return m >= n.first.from[1:] && m < n.first.to[1:] }
