package transport

import (
	"context"
	"time"

	"github.com/sluicegw/sluice/internal/limited"
)

// timed is the context of a request that knows when it began.
type timed struct {
	limited.Context
	begin time.Time
}

// timedFrom is a context that ends some time from now.
func timedFrom(ctx context.Context, now time.Time, d time.Duration) *timed {
	out := &timed{begin: now}
	out.Begin(ctx, now.Add(d))
	return out
}

// beginOf is when the operation of a context began.
func beginOf(ctx context.Context) time.Time {
	if t, ok := ctx.(*timed); ok {
		return t.begin
	}
	return time.Now()
}
