package index

import (
	"strings"
	"unsafe"

	"github.com/sluicegw/sluice/backend"
)

const (
	// maxChanged is the maximum number of changes whose keys are remembered.
	maxChanged = 1 << 16
	// changedShare limits the memory of the remembered keys to 1/changedShare of the index's memory.
	changedShare = 16
)

// changedKeys remembers the keys of the latest changes. If a fail-over of the store has lost changes, only the
// resources with these keys must be read again.
type changedKeys struct {
	// ring is a ring buffer with at most limit bytes and maxChanged elements. Once it is full, next is the oldest
	// element.
	ring  []changedKey
	next  int
	full  bool
	bytes int64
	limit int64
	// complete has, for each shard, the revision after which all changes are in the ring.
	complete []backend.Revision
}

type changedKey struct {
	key      backend.Key
	shard    int
	revision backend.Revision
}

func (c *changedKey) size() int64 { return int64(unsafe.Sizeof(*c)) + int64(len(c.key.Name)) }

// reset forgets all changes. From now on, the changes after a position are remembered.
func (c *changedKeys) reset(at backend.Position) {
	*c = changedKeys{limit: c.limit, complete: make([]backend.Revision, at.Shards())}
	for i := range c.complete {
		c.complete[i] = at.Shard(i)
	}
}

// add remembers a change. Only the name of the key is copied, since the index keeps the kind and the namespace anyway.
func (c *changedKeys) add(key backend.Key, shard int, revision backend.Revision) {
	key.Name = strings.Clone(key.Name)
	one := changedKey{key, shard, revision}
	c.bytes += one.size()
	c.full = c.full || len(c.ring) == maxChanged || len(c.ring) > 0 && c.bytes+one.size() > c.limit
	if !c.full {
		c.ring = append(c.ring, one)
		return
	}
	oldest := &c.ring[c.next]
	c.bytes -= oldest.size()
	c.complete[oldest.shard] = oldest.revision
	*oldest = one
	c.next = (c.next + 1) % len(c.ring)
}

// beyond returns the keys of the changes between the positions at and was, by kind. The hub had followed the store to
// was and now continues at the earlier position at, because the store has lost the changes in between. ok is false if
// some of these keys are no longer remembered.
func (c *changedKeys) beyond(at, was backend.Position) (keys map[string]map[backend.Key]bool, ok bool) {
	if at.IsZero() || at.Shards() != was.Shards() || at.Shards() != len(c.complete) {
		return nil, false
	}
	for i := range at.Shards() {
		from, to := at.Shard(i), was.Shard(i)
		if from.Epoch != to.Epoch || from.Seq > to.Seq || from.Compare(c.complete[i]) < 0 {
			return nil, false
		}
	}
	keys = map[string]map[backend.Key]bool{}
	for _, one := range c.ring {
		if one.revision.Compare(at.Shard(one.shard)) <= 0 {
			continue
		}
		if keys[one.key.Kind] == nil {
			keys[one.key.Kind] = map[backend.Key]bool{}
		}
		keys[one.key.Kind][one.key] = true
	}
	return keys, true
}
