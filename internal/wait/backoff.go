package wait

import (
	"context"
	"math/rand/v2"
	"time"
)

// Backoff computes the pauses between attempts that fail. Each pause is random, between zero and a limit that doubles
// after each pause ("full jitter"). So processes that have failed at the same time do not try again at the same time. A
// Backoff is not safe for concurrent use.
type Backoff struct {
	// Least is the limit of the first pause. Most is the maximum of the limits.
	Least, Most time.Duration
	// Rand generates the pauses. If it is nil, the global generator is used.
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

// Wait waits for the next pause. It returns false if ctx ends first.
func (b *Backoff) Wait(ctx context.Context) bool { return For(ctx, b.Next()) }

// Reset makes the next pause the first one again. Callers call it after a successful attempt.
func (b *Backoff) Reset() { b.bound = 0 }

// First reports whether there was no pause since the beginning or since the last Reset.
func (b *Backoff) First() bool { return b.bound == 0 }
