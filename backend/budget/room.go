package budget

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
)

// ErrBusy: the memory for what is in flight is in use. Who asks again later may get it.
var ErrBusy = errors.New("the requests, operations and answers in flight have the memory that they may have together (configuration key limit-memory); try again")

const (
	// MemoryKey is the setting of the bound of a [Memory].
	MemoryKey = "limit-memory"
	// RetryAfter is after how many seconds somebody who was told [ErrBusy] may ask again.
	RetryAfter = 1
	// Patience is how long somebody waits for memory who holds next to nothing yet.
	Patience = 3 * time.Second
)

// Room is a number of bytes that are taken and given back: a part of a [Memory]. What is
// larger than the room takes all of it. A nil Room bounds nothing. It is safe for
// concurrent use.
type Room struct {
	most          int64
	free          *semaphore.Weighted
	used, waiting *atomic.Int64 // of the memory
}

func (m *Memory) room(most int64) *Room {
	return &Room{most: most, free: semaphore.NewWeighted(most), used: &m.used, waiting: &m.waiting}
}

// Take takes bytes if they are free.
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

// Await takes bytes when they are free; who came first gets them first. It fails with
// [ErrBusy] when ctx ends, and with the error of ctx if that was cancelled.
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

// AwaitPatiently is Await for no longer than [Patience].
func (r *Room) AwaitPatiently(ctx context.Context, n int64) error {
	if r.Take(n) {
		return nil
	}
	patient, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	return r.Await(patient, n)
}

// Give gives bytes back, as many as were taken at once.
func (r *Room) Give(n int64) {
	if r == nil || n == 0 {
		return
	}
	n = min(n, r.most)
	r.used.Add(-n)
	r.free.Release(n)
}
