package unreadable

import (
	"hash/maphash"
	"sync"

	"github.com/sluicegw/sluice/backend"
)

// maxCounted bounds how many resources a [Counter] counts. It keeps eight bytes of each.
const maxCounted = 1 << 17

// Counter counts unreadable resources, each once however often it is read, up to a bound.
// A gateway has one for the services of all its catalogues, so that a reload counts
// nothing again. Safe for concurrent use.
type Counter struct {
	count func(kind string)
	seed  maphash.Seed

	mu   sync.Mutex // guards seen
	seen map[uint64]struct{}
}

// NewCounter returns a counter that calls count for each unreadable resource.
func NewCounter(count func(kind string)) *Counter {
	return &Counter{count: count, seed: maphash.MakeSeed(), seen: map[uint64]struct{}{}}
}

// add counts a resource and reports whether it did. The UID tells a re-created namesake apart.
func (c *Counter) add(r *backend.Resource) bool {
	hash := maphash.Comparable(c.seed, struct {
		key backend.Key
		uid string
	}{r.Key, r.UID})
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.seen[hash]; ok || len(c.seen) == maxCounted {
		return false
	}
	c.seen[hash] = struct{}{}
	c.count(r.Kind)
	return true
}
