package service

import (
	"context"
	"sync"

	"github.com/sluicegw/sluice/backend"
)

// turns lets the writers of one gateway change one resource one after the
// other, in the order of their arrival, so that they never lose a race against
// each other. Who waits is a request under way, of which the server has a
// bounded number. The zero value is ready; safe for concurrent use.
type turns struct {
	mu   sync.Mutex // guards keys and the counts in it
	keys map[backend.Key]*turn
}

// turn is whose turn it is at one key.
type turn struct {
	// taken holds one value while somebody has the turn.
	taken chan struct{}
	// users have the turn or wait for it.
	users int
}

// take waits for the turn at a key. False means that ctx ended first; else
// release gives the turn to the next.
func (t *turns) take(ctx context.Context, key backend.Key) (release func(), ok bool) {
	t.mu.Lock()
	if t.keys == nil {
		t.keys = map[backend.Key]*turn{}
	}
	at := t.keys[key]
	if at == nil {
		at = &turn{taken: make(chan struct{}, 1)}
		t.keys[key] = at
	}
	at.users++
	t.mu.Unlock()
	leave := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if at.users--; at.users == 0 {
			delete(t.keys, key)
		}
	}
	select {
	case at.taken <- struct{}{}:
		return func() {
			<-at.taken
			leave()
		}, true
	case <-ctx.Done():
		leave()
		return nil, false
	}
}
