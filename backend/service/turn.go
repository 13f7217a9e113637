package service

import (
	"context"
	"slices"
	"sync"

	"github.com/sluicegw/sluice/backend"
)

// turns lets the writers of one gateway change one resource one after the
// other, in the order of their arrival, so that they never lose a race against
// each other. Who waits is a request under way, of which the server has a
// bounded number. The zero value is ready; safe for concurrent use.
type turns struct {
	mu sync.Mutex
	// waiting are those who wait at a key, in their order, while somebody has the turn.
	// Each is told by a value in its channel that it has the turn.
	waiting map[backend.Key][]chan struct{}
}

// take waits for the turn at a key. False means that ctx ended first; else pass gives the
// turn to the next.
func (t *turns) take(ctx context.Context, key backend.Key) bool {
	t.mu.Lock()
	if t.waiting == nil {
		t.waiting = map[backend.Key][]chan struct{}{}
	}
	queue, taken := t.waiting[key]
	if !taken {
		t.waiting[key] = nil
		t.mu.Unlock()
		return true
	}
	told := make(chan struct{}, 1)
	t.waiting[key] = append(queue, told)
	t.mu.Unlock()
	select {
	case <-told:
		return true
	case <-ctx.Done():
	}
	t.mu.Lock()
	queue = t.waiting[key]
	at := slices.Index(queue, told)
	if at >= 0 {
		t.waiting[key] = slices.Delete(queue, at, at+1)
	}
	t.mu.Unlock()
	if at < 0 { // it was told meanwhile
		t.pass(key)
	}
	return false
}

// pass gives the turn at a key to the next, of whoever has it.
func (t *turns) pass(key backend.Key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	queue := t.waiting[key]
	if len(queue) == 0 {
		delete(t.waiting, key)
		return
	}
	queue[0] <- struct{}{}
	t.waiting[key] = slices.Delete(queue, 0, 1)
}
