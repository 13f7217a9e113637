package change

import (
	"slices"
	"sync"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/body"
	"github.com/sluicegw/sluice/backend/index"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// The limits of a changeCache: the number of changes, and the bytes of their bodies.
const (
	cachedChanges = 512     // two deliveries of the store
	cachedBytes   = 4 << 20 // of all bodies; each counts twice, for the states before and after the change
)

// changeCache caches the decoded bodies of the latest changes, and the states before and after these changes, which
// filters test. All streams of a gateway get the same changes from the hub, so each change is decoded only once. The
// cache is safe for concurrent use.
type changeCache struct {
	// index provides states before a change that the log lacks; nil if there is no index.
	index   *index.Index
	mu      sync.Mutex // guards all below
	changes map[cacheKey]*cachedChange
	// order has the entries in the order of arrival. bytes is the sum of their sizes.
	order []*cachedChange
	bytes int
}

// cacheKey identifies a change by its resource and revision.
type cacheKey struct {
	stored   *backend.Resource
	revision backend.Revision
}

// cachedChange is a change whose body and states are decoded on first use.
type cachedChange struct {
	key  cacheKey
	size int
	body func() (*body.Body, error)

	once          sync.Once // guards both states
	before, after rowState
}

// rowState is the state of a resource before or after a change, in the form that filters test.
type rowState struct {
	// resource is nil if the resource did not exist.
	resource *backend.Resource
	rows     []index.Row
	// unknown reports that the log does not have the state, or that the state cannot be read.
	unknown bool
}

// bodyOf returns the decoded body of a resource. It is decoded once and shared by all callers.
func (r *changeCache) bodyOf(k *kind.Kind, stored *backend.Resource) (*body.Body, error) {
	return r.change(k, cacheKey{stored, stored.Revision}).body()
}

// statesOf returns the states before and after a change.
func (r *changeCache) statesOf(k *kind.Kind, e *backend.Event) (before, after rowState) {
	c := r.change(k, cacheKey{e.Resource, e.Revision})
	c.once.Do(func() {
		was, known := kind.Before(e)
		entry := r.index.Replaced(e)
		switch {
		case !known && entry != nil:
			c.before = rowState{resource: &entry.Resource, rows: k.Rows.Of(&entry.Body)}
		case !known:
			c.before.unknown = true
		case was == e.Resource:
			c.before = stateOf(k, was, c.body)
		case was != nil:
			c.before = stateOf(k, was, func() (*body.Body, error) { return k.Body.Read(was) })
		}
		if e.Type != backend.Deleted {
			c.after = stateOf(k, e.Resource, c.body)
		}
	})
	return c.before, c.after
}

func stateOf(k *kind.Kind, r *backend.Resource, read func() (*body.Body, error)) rowState {
	b, err := read()
	if err != nil {
		return rowState{unknown: true}
	}
	return rowState{resource: r, rows: k.Rows.Of(b)}
}

// change returns the cache entry of a change, adding it if necessary.
func (r *changeCache) change(k *kind.Kind, key cacheKey) *cachedChange {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.changes[key]; known != nil {
		return known
	}
	c := &cachedChange{
		key:  key,
		size: 2 * len(key.stored.Body),
		body: sync.OnceValues(func() (*body.Body, error) { return k.Body.Read(key.stored) }),
	}
	if r.changes == nil {
		r.changes = make(map[cacheKey]*cachedChange, cachedChanges)
	}
	r.bytes += c.size
	for len(r.order) > 0 && (len(r.order) == cachedChanges || r.bytes > cachedBytes) {
		oldest := r.order[0]
		r.order = slices.Delete(r.order, 0, 1)
		r.bytes -= oldest.size
		delete(r.changes, oldest.key)
	}
	r.order, r.changes[key] = append(r.order, c), c
	return c
}
