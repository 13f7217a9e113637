package budget

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
)

// ErrBusy means that the memory for requests, operations, answers and events is in use. A later attempt may succeed.
var ErrBusy = errors.New("the requests, operations and answers in flight have the memory that they may have together (configuration key limit-memory); try again")

const (
	// MemoryKey is the name of the setting for the size of a [Memory].
	MemoryKey = "limit-memory"
	// RetryAfter is the number of seconds after which a client that got [ErrBusy] may try again.
	RetryAfter = 1
	// Patience is how long an operation with only its initial memory waits for more.
	Patience = 3 * time.Second
)

// Room is a part of a [Memory], from which bytes are taken and given back. A request for more than the size of the room
// takes the whole room. A nil Room is unlimited. It is safe for concurrent use.
type Room struct {
	most          int64
	free          *semaphore.Weighted
	used, waiting *atomic.Int64 // shared by all rooms of the memory
}

func (m *Memory) room(most int64) *Room {
	return &Room{most: most, free: semaphore.NewWeighted(most), used: &m.used, waiting: &m.waiting}
}

// Take takes n bytes if they are free, and reports whether they were.
func (r *Room) Take(n int64) bool {
	if r == nil {
		return true
	}
	n = min(n, r.most)
	if !r.free.TryAcquire(n) {
		return false
	}
	r.used.Add(n)
	return true
}

// Await takes n bytes as soon as they are free, first come, first served. If the deadline of ctx passes, it returns
// [ErrBusy]. If ctx is cancelled, it returns [context.Canceled].
func (r *Room) Await(ctx context.Context, n int64) error {
	if r.Take(n) {
		return nil
	}
	n = min(n, r.most)
	r.waiting.Add(1)
	defer r.waiting.Add(-1)
	if r.free.Acquire(ctx, n) != nil {
		if err := ctx.Err(); errors.Is(err, context.Canceled) {
			return err
		}
		return ErrBusy
	}
	r.used.Add(n)
	return nil
}

// AwaitPatiently is like Await, but waits for at most [Patience].
func (r *Room) AwaitPatiently(ctx context.Context, n int64) error {
	if r.Take(n) {
		return nil
	}
	patient, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	return r.Await(patient, n)
}

// Give gives back n bytes. n must be the number that one call has taken.
func (r *Room) Give(n int64) {
	if r == nil || n == 0 {
		return
	}
	n = min(n, r.most)
	r.used.Add(-n)
	r.free.Release(n)
}
