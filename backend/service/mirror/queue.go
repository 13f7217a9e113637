package mirror

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/sluicegw/sluice/backend"
)

const (
	// maxQueued is the number of keys above which awaitRoom waits.
	maxQueued = 20_000
	// The shortest and the longest pause before a key that failed is taken again.
	minPause = 10 * time.Millisecond
	maxPause = 10 * time.Second
	// The shortest and the longest pause after a race against another writer. If the service is slow, a writer may hold
	// the lock of the key for a long time.
	minRacedPause = 20 * time.Millisecond
	maxRacedPause = time.Second
)

// undone has the keys that must be worked on again. The record of a raced key was changed or locked by another writer.
// For a failed key there was an error.
type undone struct{ raced, failed []backend.Key }

// queue is a queue of keys to work on. Each key occurs once, and only one worker works on it at a time. If a key is
// added while a worker works on it, the key is queued again afterwards. The queue is safe for concurrent use.
type queue struct {
	wake chan struct{} // has an element if a worker may find a key
	room chan struct{} // has an element if there may be room again

	mu sync.Mutex // guards all below
	// tasks has the state of each key that is queued or is being worked on.
	tasks map[backend.Key]*task
	// ready lists the keys that wait for a worker, in the order in which they became ready.
	ready []backend.Key
	// paused maps a key that must be worked on again to the time at which it becomes ready.
	paused map[backend.Key]time.Time
}

// task is the state of a key in a queue.
type task struct {
	// since is when the key was first added after the last success.
	since time.Time
	// working reports whether a worker has taken the key. again reports whether the key was added since then.
	working, again bool
	// failures and races count the attempts since the last success.
	failures, races int
}

func newQueue() *queue {
	return &queue{
		wake: make(chan struct{}, 1), room: make(chan struct{}, 1),
		tasks: map[backend.Key]*task{}, paused: map[backend.Key]time.Time{},
	}
}

// signal sends to a channel with a buffer of one element. If the buffer is full, it does nothing.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// add adds keys that are not queued yet. A paused key becomes ready at once.
func (q *queue) add(keys ...backend.Key) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	for _, key := range keys {
		t := q.tasks[key]
		_, pauses := q.paused[key]
		switch {
		case t == nil:
			q.tasks[key] = &task{since: now}
			q.ready = append(q.ready, key)
		case t.working:
			t.again = true
		case pauses:
			delete(q.paused, key)
			q.ready = append(q.ready, key)
		}
	}
	if len(q.ready) > 0 {
		signal(q.wake)
	}
}

// awaitRoom waits until the queue is no longer full, or ctx ends.
func (q *queue) awaitRoom(ctx context.Context) {
	for {
		q.mu.Lock()
		full := len(q.tasks) >= maxQueued
		q.mu.Unlock()
		if !full {
			signal(q.room) // for others who wait
			return
		}
		select {
		case <-q.room:
		case <-ctx.Done():
			return
		}
	}
}

// take waits for keys. It returns no keys only if ctx has ended. most is the maximum number of keys in the result. The
// caller must pass the keys to done.
func (q *queue) take(ctx context.Context, most int) []backend.Key {
	for {
		keys, due := q.takeReady(most)
		if len(keys) > 0 {
			return keys
		}
		if !q.await(ctx, due) {
			return nil
		}
	}
}

// await waits until a key may be ready, or until due if due is not zero. It returns false if ctx ended first.
func (q *queue) await(ctx context.Context, due time.Time) bool {
	var alarm <-chan time.Time
	if !due.IsZero() {
		timer := time.NewTimer(time.Until(due))
		defer timer.Stop()
		alarm = timer.C
	}
	select {
	case <-q.wake:
	case <-alarm:
	case <-ctx.Done():
		return false
	}
	return ctx.Err() == nil
}

// takeReady returns keys to work on, or none. most is their maximum number. due is the time at which the next paused
// key becomes ready; zero if none is paused.
func (q *queue) takeReady(most int) (keys []backend.Key, due time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	for key, at := range q.paused {
		switch {
		case !at.After(now):
			delete(q.paused, key)
			q.ready = append(q.ready, key)
		case due.IsZero() || at.Before(due):
			due = at
		}
	}
	keys = slices.Clip(q.ready[:min(most, len(q.ready))])
	q.ready = q.ready[len(keys):]
	if len(q.ready) == 0 {
		q.ready = nil // to free the memory of the keys
	}
	for _, key := range keys {
		q.tasks[key].working = true
	}
	if len(keys) > 0 && (len(q.ready) > 0 || !due.IsZero()) {
		signal(q.wake) // another worker takes the rest, or waits for what is paused
	}
	return keys, due
}

// done ends the work on keys that were taken. The keys in left become ready again after a pause, which doubles with
// each attempt up to a maximum. The other keys leave the queue, unless they were added again meanwhile.
func (q *queue) done(keys []backend.Key, left undone) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	for _, key := range left.raced {
		t := q.tasks[key]
		q.paused[key] = now.Add(min(maxRacedPause, minRacedPause<<min(t.races, 20)))
		t.races++
	}
	for _, key := range left.failed {
		t := q.tasks[key]
		q.paused[key] = now.Add(min(maxPause, minPause<<min(t.failures, 20)))
		t.failures++
	}
	for _, key := range keys {
		t := q.tasks[key]
		_, pauses := q.paused[key]
		t.working = false
		switch {
		case pauses:
			t.again = false
		case t.again:
			*t = task{since: now}
			q.ready = append(q.ready, key)
		default:
			delete(q.tasks, key)
		}
	}
	signal(q.wake)
	signal(q.room)
}

// oldest returns the time at which the oldest key in the queue was added. waits is false if the queue is empty.
func (q *queue) oldest() (since time.Time, waits bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, t := range q.tasks {
		if !waits || t.since.Before(since) {
			since = t.since
			waits = true
		}
	}
	return since, waits
}
