package hub

import (
	"errors"

	"github.com/sluicegw/sluice/backend"
)

// shards is a set of shards. The zero value is empty.
type shards struct {
	all  bool
	bits [4]uint64 // a position has at most 256 shards
}

func allShards() shards { return shards{all: true} }

func (s *shards) add(i int) { s.bits[i/64] |= 1 << (i % 64) }

func (s *shards) has(i int) bool { return s.all || s.bits[i/64]&(1<<(i%64)) != 0 }

func (s *shards) empty() bool { return !s.all && s.bits == [4]uint64{} }

// list returns the shards of the set that are less than n.
func (s *shards) list(n int) (out []int) {
	for i := range n {
		if s.has(i) {
			out = append(out, i)
		}
	}
	return out
}

// loss is a set of shards whose logs cannot be continued.
type loss struct {
	shards
	// shared maps a shard to the newest revision up to which the store and the reader have the same changes, if that is
	// known.
	shared map[int]backend.Revision
}

// lossOf returns the shards that err names as expired; all shards if it names none.
func lossOf(err error) (out loss) {
	var e *backend.ExpiredError
	if !errors.As(err, &e) {
		return loss{shards: allShards()}
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

// restart returns the position from which to continue: for each shard the shared revision if it is known, otherwise the
// revision in now, the position of the store.
func (l *loss) restart(now backend.Position) backend.Position {
	out := make([]backend.Revision, now.Shards())
	for i := range out {
		out[i] = now.Shard(i)
		if shared, ok := l.shared[i]; ok {
			out[i] = shared
		}
	}
	return backend.NewPosition(out...)
}
