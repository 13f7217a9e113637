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
// decoded once for all of them. The values are never changed. The zero value is
// ready; all methods are safe for concurrent use.
type recent struct {
	mu      sync.RWMutex
	objects map[*backend.Resource]backend.Object
	ring    [recentObjects]*backend.Resource
	next    int
}

// object decodes a resource, unless somebody did.
func (r *recent) object(k *kind, stored *backend.Resource) (backend.Object, error) {
	r.mu.RLock()
	obj, ok := r.objects[stored]
	r.mu.RUnlock()
	if ok {
		return obj, nil
	}
	obj, err := k.decode(stored)
	if err == nil && len(stored.Body) <= recentBytes {
		r.keep(stored, obj)
	}
	return obj, err
}

func (r *recent) keep(stored *backend.Resource, obj backend.Object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.objects == nil {
		r.objects = make(map[*backend.Resource]backend.Object, recentObjects)
	}
	if _, ok := r.objects[stored]; ok {
		return
	}
	delete(r.objects, r.ring[r.next])
	r.ring[r.next], r.objects[stored] = stored, obj
	r.next = (r.next + 1) % recentObjects
}
