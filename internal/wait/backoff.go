package wait

import (
	"context"
	"math/rand/v2"
	"time"
)

// Backoff makes the pauses between attempts at something that fails: each is random, from nothing to a bound that
// doubles with each pause ("full jitter"), so that many who failed together do not come back together. It is not safe
// for concurrent use.
type Backoff struct {
	// Least is the bound of the first pause, and Most the largest one.
	Least, Most time.Duration
	// Rand makes the pauses. Default: the global generator.
	Rand *rand.Rand

	bound time.Duration // of the next pause; 0 before the first one
}

// Next returns the next pause.
func (b *Backoff) Next() time.Duration {
	bound := max(b.bound, b.Least)
	b.bound = min(2*bound, b.Most)
	if b.Rand != nil {
		return time.Duration(b.Rand.Int64N(int64(bound) + 1))
	}
	return rand.N(bound + 1)
}

// Wait waits for the next pause and reports whether ctx still lives.
func (b *Backoff) Wait(ctx context.Context) bool { return For(ctx, b.Next()) }

// Reset begins with the first pause again, after an attempt that succeeded.
func (b *Backoff) Reset() { b.bound = 0 }

// First reports whether there was no pause yet, or none since the last reset.
func (b *Backoff) First() bool { return b.bound == 0 }
