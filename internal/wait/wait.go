// Package wait waits, but never longer than a context lives.
package wait

import (
	"context"
	"time"
)

// For waits and reports whether ctx still lives.
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
