package main

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// key names a resource. Namespace is empty for GLOBAL kinds.
type key struct{ Kind, Namespace, Name string }

// firstPause and lastPause are the shortest and the longest pause after which a failed key is tried again.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = 30 * time.Second
)

// queue has the keys that must be reconciled. A key is queued at most once, and two workers never work on the same key
// at the same time. A key that is added while a worker works on it is queued again afterwards.
type queue struct {
	ready chan key // bounded: add waits while it is full

	mu   sync.Mutex // guards all below
	keys map[key]*keyState
}

// keyState is the state of a key. queued reports whether the key is in the queue, and running whether a worker works on
// it. again is set if the key was added in the meantime. timer, if not nil, adds the key at a later time.
type keyState struct {
	queued, running, again bool
	failures               int
	timer                  *time.Timer
}

func newQueue(size int) *queue { return &queue{ready: make(chan key, size), keys: map[key]*keyState{}} }

// add adds a key to the queue. It blocks while the queue is full.
func (q *queue) add(ctx context.Context, k key) {
	q.mu.Lock()
	t := q.keys[k]
	if t == nil {
		t = &keyState{}
		q.keys[k] = t
	}
	if t.timer != nil {
		t.timer.Stop()
	}
	if t.running {
		t.again = true
	}
	known := t.queued || t.running
	t.queued = t.queued || !known
	q.mu.Unlock()
	if known {
		return
	}
	select {
	case q.ready <- k:
	case <-ctx.Done():
	}
}

// work takes keys from the queue, one after another, until ctx ends. It calls do with the context working, which may
// end later. do returns the time after which to work on the key again; 0 for never. If do fails, the key is tried again
// after a pause.
func (q *queue) work(ctx, working context.Context, do func(context.Context, key) (time.Duration, error)) {
	for {
		select {
		case <-ctx.Done():
			return
		case k := <-q.ready:
			q.mu.Lock()
			t := q.keys[k]
			t.queued, t.running = false, true
			q.mu.Unlock()
			after, err := do(working, k)
			q.done(ctx, k, after, err)
		}
	}
}

// done records the result of do for a key.
func (q *queue) done(ctx context.Context, k key, after time.Duration, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := q.keys[k]
	again := t.again
	t.running, t.again = false, false
	if err == nil {
		t.failures = 0
	} else {
		after = min(firstPause<<min(t.failures, 16), lastPause)
		after -= rand.N(after / 2) // so that those that failed together do not come together
		t.failures++
	}
	switch {
	case again && err == nil:
		after = 0
	case after == 0:
		delete(q.keys, k)
		return
	}
	t.timer = time.AfterFunc(after, func() { q.add(ctx, k) })
}
