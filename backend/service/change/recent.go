package change

import (
	"slices"
	"sync"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/body"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// What is kept of the changes that came last.
const (
	recentBodies = 128
	recentBytes  = 4 << 20 // of all bodies together
)

// recent holds the bodies of resources that changed lately. All listeners of a
// gateway get the same stored resource of a change from the hub, so its body is
// read once for all of them. The zero value is ready; all methods are safe for concurrent use.
type recent struct {
	mu     sync.RWMutex // guards all below
	bodies map[*backend.Resource]readBody
	// order has them as they came, bytes is the sum of their sizes.
	order []*backend.Resource
	bytes int
}

// readBody reads one body, at most once.
type readBody = func() (*body.Body, error)

// body reads the body of a resource, unless somebody did or does.
func (r *recent) body(k *kind.Kind, stored *backend.Resource) (*body.Body, error) {
	r.mu.RLock()
	read, ok := r.bodies[stored]
	r.mu.RUnlock()
	if !ok {
		read = r.keep(stored, sync.OnceValues(func() (*body.Body, error) { return k.Body.Read(stored) }))
	}
	return read()
}

// keep notes how a body is read, unless somebody was faster.
func (r *recent) keep(stored *backend.Resource, read readBody) readBody {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known, ok := r.bodies[stored]; ok {
		return known
	}
	if r.bodies == nil {
		r.bodies = make(map[*backend.Resource]readBody, recentBodies)
	}
	r.bytes += len(stored.Body)
	for len(r.order) > 0 && (len(r.order) == recentBodies || r.bytes > recentBytes) {
		oldest := r.order[0]
		r.order = slices.Delete(r.order, 0, 1)
		r.bytes -= len(oldest.Body)
		delete(r.bodies, oldest)
	}
	r.order, r.bodies[stored] = append(r.order, stored), read
	return read
}
