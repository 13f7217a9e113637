package hub

import "github.com/sluicegw/sluice/backend"

// coversOn reports whether p is at or after q on all shards of a set.
func coversOn(p, q backend.Position, on *shards) bool {
	for i := range q.Shards() {
		if on.has(i) && p.Shard(i).Compare(q.Shard(i)) < 0 {
			return false
		}
	}
	return true
}

// later returns, for each shard, the later revision of p and q.
func later(p, q backend.Position) backend.Position {
	if p.Covers(q) {
		return p
	}
	out := make([]backend.Revision, max(p.Shards(), q.Shards()))
	for i := range out {
		out[i] = p.Shard(i)
		if out[i].Compare(q.Shard(i)) < 0 {
			out[i] = q.Shard(i)
		}
	}
	return backend.NewPosition(out...)
}

// merge returns p with the revisions of q on the shards in from.
func merge(p, q backend.Position, from *shards) backend.Position {
	out := make([]backend.Revision, p.Shards())
	for i := range out {
		out[i] = p.Shard(i)
		if from.has(i) {
			out[i] = q.Shard(i)
		}
	}
	return backend.NewPosition(out...)
}
