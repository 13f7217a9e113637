package service

import (
	"context"
	"sync"

	"github.com/sluicegw/sluice/backend"
)

// turns lets the writers of one gateway change one resource one after the
// other, in the order of their arrival, so that they never lose a race against
// each other. A writer that waits is a request under way, of which the server has
// a bounded number. The zero value is ready; safe for concurrent use.
type turns struct {
	mu sync.Mutex // guards what follows
	at map[backend.Key]*turn
}

// turn is the turn of one resource. Those that wait are served in the order of their arrival, as senders to a
// channel are.
type turn struct {
	taken   chan struct{} // has an element while a writer has the turn
	writers int           // that have the turn or wait for it
}

// take waits for the turn at a key, and reports whether it had to. ok is false if ctx ended
// first; else pass gives the turn to the next.
func (t *turns) take(ctx context.Context, key backend.Key) (waited, ok bool) {
	t.mu.Lock()
	if t.at == nil {
		t.at = map[backend.Key]*turn{}
	}
	one := t.at[key]
	if one == nil {
		one = &turn{taken: make(chan struct{}, 1)}
		t.at[key] = one
	}
	one.writers++
	if one.writers == 1 { // before another writer comes, which would overtake this one
		one.taken <- struct{}{}
		t.mu.Unlock()
		return false, true
	}
	t.mu.Unlock()
	select {
	case one.taken <- struct{}{}:
		return true, true
	case <-ctx.Done():
		t.leave(key, one)
		return true, false
	}
}

// pass gives the turn at a key to the next.
func (t *turns) pass(key backend.Key) {
	t.mu.Lock()
	one := t.at[key]
	t.mu.Unlock()
	<-one.taken
	t.leave(key, one)
}

func (t *turns) leave(key backend.Key, one *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if one.writers--; one.writers == 0 {
		delete(t.at, key)
	}
}
