package service

import (
	"sync"

	"github.com/sluicegw/sluice/backend"
)

// What is kept decoded of the changes that came last.
const (
	recentObjects = 128
	recentBytes   = 32 << 10 // largest body
)

// recent holds the Go values of resources that changed lately. All listeners of
// a gateway get the same stored resource of a change from the hub, so it is
// decoded once for all of them, unless it is large. The values are never
// changed. The zero value is ready; all methods are safe for concurrent use.
type recent struct {
	mu      sync.RWMutex // guards all below
	objects map[*backend.Resource]func() (backend.Object, error)
	ring    [recentObjects]*backend.Resource
	next    int
}

// object decodes a resource, unless somebody did or does.
func (r *recent) object(k *kind, stored *backend.Resource) (backend.Object, error) {
	if len(stored.Body) > recentBytes {
		return k.decode(stored)
	}
	r.mu.RLock()
	decode, ok := r.objects[stored]
	r.mu.RUnlock()
	if !ok {
		decode = r.keep(stored, sync.OnceValues(func() (backend.Object, error) { return k.decode(stored) }))
	}
	return decode()
}

// keep notes how a resource is decoded, unless somebody was faster.
func (r *recent) keep(stored *backend.Resource, decode func() (backend.Object, error)) func() (backend.Object, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known, ok := r.objects[stored]; ok {
		return known
	}
	if r.objects == nil {
		r.objects = make(map[*backend.Resource]func() (backend.Object, error), recentObjects)
	}
	delete(r.objects, r.ring[r.next])
	r.ring[r.next], r.objects[stored] = stored, decode
	r.next = (r.next + 1) % recentObjects
	return decode
}
