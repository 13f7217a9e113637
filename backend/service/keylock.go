package service

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/sluicegw/sluice/backend"
)

// keyLocks lets only one writer of this gateway at a time change a resource. The others wait in order of arrival.
// Without the locks, these writers would lose races against each other and repeat their writes. Each waiting writer is
// a running request, and the server limits their number. The zero value is ready to use. keyLocks is safe for
// concurrent use.
type keyLocks struct {
	mu    sync.Mutex // guards locks
	locks map[backend.Key]*keyLock
}

// keyLock is the lock of one resource. held is a channel, so that waiting writers get the lock in order of arrival.
type keyLock struct {
	held    chan struct{} // has an element while a writer holds the lock
	writers int           // writers that hold the lock or wait for it
}

// lock locks a key. waited reports whether another writer held the lock; locked is false if ctx ended first.
func (l *keyLocks) lock(ctx context.Context, key backend.Key) (waited, locked bool) {
	l.mu.Lock()
	if l.locks == nil {
		l.locks = map[backend.Key]*keyLock{}
	}
	one := l.locks[key]
	if one == nil {
		one = &keyLock{held: make(chan struct{}, 1)}
		l.locks[key] = one
	}
	one.writers++
	if one.writers == 1 { // with mu locked, so that no later writer gets the lock first
		one.held <- struct{}{}
		l.mu.Unlock()
		return false, true
	}
	l.mu.Unlock()
	select {
	case one.held <- struct{}{}:
		return true, true
	case <-ctx.Done():
		l.leave(key, one)
		return true, false
	}
}

// LockState describes a resource whose lock is held.
type LockState struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Writers is the number of writers that hold the lock or wait for it.
	Writers int `json:"writers"`
}

// busiest returns the locked resources with the most writers, and the number of all locked resources. most is the
// maximum number of resources in the result.
func (l *keyLocks) busiest(most int) (states []LockState, locked int) {
	l.mu.Lock()
	states = make([]LockState, 0, len(l.locks))
	for key, one := range l.locks {
		states = append(states, LockState{
			Kind: key.Kind, Namespace: key.Namespace, Name: key.Name, Writers: one.writers,
		})
	}
	l.mu.Unlock()
	locked = len(states)
	slices.SortFunc(states, func(a, b LockState) int {
		return cmp.Or(
			cmp.Compare(b.Writers, a.Writers),
			cmp.Compare(a.Kind, b.Kind),
			cmp.Compare(a.Namespace, b.Namespace),
			cmp.Compare(a.Name, b.Name),
		)
	})
	return states[:min(locked, most)], locked
}

// TryLock locks a key if no writer holds its lock or waits for it. It reports whether it has locked the key. Background
// work uses it instead of waiting.
func (l *keyLocks) TryLock(key backend.Key) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.locks[key] != nil {
		return false
	}
	if l.locks == nil {
		l.locks = map[backend.Key]*keyLock{}
	}
	one := &keyLock{held: make(chan struct{}, 1), writers: 1}
	one.held <- struct{}{}
	l.locks[key] = one
	return true
}

// Unlock unlocks a key locked by TryLock.
func (l *keyLocks) Unlock(key backend.Key) { l.unlock(key) }

// unlock passes the lock of a key to the next waiting writer.
func (l *keyLocks) unlock(key backend.Key) {
	l.mu.Lock()
	one := l.locks[key]
	l.mu.Unlock()
	<-one.held
	l.leave(key, one)
}

// leave removes a writer from a lock, and the lock from the map after its last writer.
func (l *keyLocks) leave(key backend.Key, one *keyLock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	one.writers--
	if one.writers == 0 {
		delete(l.locks, key)
	}
}
