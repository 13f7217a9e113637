package index

import (
	"strings"

	"github.com/sluicegw/sluice/backend"
)

// maxChanged is of how many changes the keys are remembered.
const maxChanged = 1 << 16

// changedKeys are the keys of the latest changes, so that what a store has lost of them in
// a fail-over is read again, and nothing else. The zero value remembers none.
type changedKeys struct {
	// ring is a ring once it has maxChanged elements; next is then the oldest.
	ring []changedKey
	next int
	// complete is from where on each shard's changes are all in the ring.
	complete []backend.Revision
}

type changedKey struct {
	key      backend.Key
	shard    int
	revision backend.Revision
}

// begin forgets all: the changes after a position follow.
func (c *changedKeys) begin(at backend.Position) {
	*c = changedKeys{complete: make([]backend.Revision, at.Shards())}
	for i := range c.complete {
		c.complete[i] = at.Shard(i)
	}
}

// add remembers a change. Its kind and namespace are strings that are kept anyway.
func (c *changedKeys) add(key backend.Key, shard int, revision backend.Revision) {
	key.Name = strings.Clone(key.Name)
	one := changedKey{key, shard, revision}
	if len(c.ring) < maxChanged {
		c.ring = append(c.ring, one)
		return
	}
	oldest := &c.ring[c.next]
	c.complete[oldest.shard] = oldest.revision
	*oldest = one
	c.next = (c.next + 1) % maxChanged
}

// beyond returns the keys of the changes between two positions, each once, by kind; false if
// they are not all known. At is where the store begins again, and was where it had been
// followed to.
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
