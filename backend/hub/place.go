package hub

import (
	"errors"
	"slices"

	"github.com/sluicegw/sluice/backend"
)

// shards is a set of shards. The zero value is empty.
type shards struct {
	all  bool
	bits [4]uint64 // a position has at most 256
}

func (s *shards) add(i int) { s.bits[i/64] |= 1 << (i % 64) }

func (s *shards) has(i int) bool { return s.all || s.bits[i/64]&(1<<(i%64)) != 0 }

func (s *shards) empty() bool { return !s.all && s.bits == [4]uint64{} }

// list are the members below n.
func (s *shards) list(n int) (out []int) {
	for i := range n {
		if s.has(i) {
			out = append(out, i)
		}
	}
	return out
}

// loss is the shards on which the hub cannot go on, and where it can begin again on some of
// them: the last place that the log has in common with the hub's.
type loss struct {
	shards
	shared map[int]backend.Revision
}

// lossOf is what a watch that ended with an error has lost.
func lossOf(err error) (out loss) {
	var e *backend.ExpiredError
	if !errors.As(err, &e) {
		return loss{shards: shards{all: true}}
	}
	for i, shard := range e.Shards {
		out.add(shard)
		if i < len(e.Shared) && !e.Shared[i].IsZero() {
			if out.shared == nil {
				out.shared = map[int]backend.Revision{}
			}
			out.shared[shard] = e.Shared[i]
		}
	}
	return out
}

// begin is where the hub begins again, for a store that is at a position now.
func (l *loss) begin(now backend.Position) backend.Position {
	out := make([]backend.Revision, now.Shards())
	for i := range out {
		out[i] = now.Shard(i)
		if shared, ok := l.shared[i]; ok {
			out[i] = shared
		}
	}
	return backend.NewPosition(out...)
}

// reached says whether p has seen everything that q has, on the given shards.
func reached(p, q backend.Position, on *shards) bool {
	for i := range q.Shards() {
		if on.has(i) && p.Shard(i).Compare(q.Shard(i)) < 0 {
			return false
		}
	}
	return true
}

// later is the maximum per shard.
func later(p, q backend.Position) backend.Position {
	if reached(p, q, &shards{all: true}) {
		return p
	}
	out := make([]backend.Revision, max(p.Shards(), q.Shards()))
	for i := range out {
		out[i] = slices.MaxFunc([]backend.Revision{p.Shard(i), q.Shard(i)}, backend.Revision.Compare)
	}
	return backend.NewPosition(out...)
}

// moved is p, but with q's revisions on a set of shards.
func moved(p, q backend.Position, set *shards) backend.Position {
	out := make([]backend.Revision, p.Shards())
	for i := range out {
		out[i] = p.Shard(i)
		if set.has(i) {
			out[i] = q.Shard(i)
		}
	}
	return backend.NewPosition(out...)
}
