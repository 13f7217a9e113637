// Package wait waits for time or for a function. It stops waiting when a context ends.
package wait

import (
	"context"
	"time"
)

// For waits for the duration d. It returns false if ctx ends first.
func For(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
