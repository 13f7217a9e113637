package limited

import (
	"context"
	"time"
)

// Inattention is for how long [Await] waits, at most, without looking whether the context
// has ended.
const Inattention = 50 * time.Millisecond

// Await waits until done is closed, and says whether it is before ctx ends; the end of ctx
// may be noticed [Inattention] later. Where done follows soon this costs much less than
// waiting for both.
func Await(ctx context.Context, done <-chan struct{}) bool {
	limit := Inattention
	if end, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(end))
	}
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case <-done:
		return true
	case <-t.C:
	}
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return false
	}
}
