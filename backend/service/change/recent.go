package change

import (
	"sync"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/body"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// What is kept of the changes that came last.
const (
	recentBodies = 128
	recentBytes  = 32 << 10 // of the largest body
)

// recent holds the bodies of resources that changed lately. All listeners of a
// gateway get the same stored resource of a change from the hub, so its body is
// read once for all of them, unless it is large. The zero value is ready; all methods are safe for concurrent use.
type recent struct {
	mu     sync.RWMutex // guards all below
	bodies map[*backend.Resource]readBody
	ring   [recentBodies]*backend.Resource
	next   int
}

// readBody reads one body, at most once.
type readBody = func() (*body.Body, error)

// body reads the body of a resource, unless somebody did or does.
func (r *recent) body(k *kind.Kind, stored *backend.Resource) (*body.Body, error) {
	if len(stored.Body) > recentBytes {
		return k.Body.Read(stored)
	}
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
	delete(r.bodies, r.ring[r.next])
	r.ring[r.next], r.bodies[stored] = stored, read
	r.next = (r.next + 1) % recentBodies
	return read
}
