package limited_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegw/sluice/internal/limited"
)

// TestAwaitNoticesWhateverComesFirst: what it waits for at once, the deadline of the context
// at its time, and that the context was cancelled a moment later.
func TestAwaitNoticesWhateverComesFirst(t *testing.T) {
	const never = time.Hour
	for name, c := range map[string]struct {
		done, deadline, cancelled time.Duration
		is                        bool
		after                     time.Duration
	}{
		"done at once":        {0, never, never, true, 0},
		"done soon":           {10 * time.Millisecond, never, never, true, 10 * time.Millisecond},
		"done late":           {time.Second, never, never, true, time.Second},
		"an early deadline":   {never, 20 * time.Millisecond, never, false, 20 * time.Millisecond},
		"a late deadline":     {never, time.Minute, never, false, time.Minute},
		"a deadline that was": {never, -time.Second, never, false, 0},
		"cancelled soon":      {never, never, 20 * time.Millisecond, false, limited.Inattention},
		"cancelled late":      {never, never, time.Second, false, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				ctx := limited.Until(t.Context(), begin.Add(c.deadline))
				defer ctx.Cancel()
				done := make(chan struct{})
				defer time.AfterFunc(c.done, func() { close(done) }).Stop()
				defer time.AfterFunc(c.cancelled, ctx.Cancel).Stop()
				if is := limited.Await(ctx, done); is != c.is || time.Since(begin) != c.after {
					t.Errorf("done: %v after %v", is, time.Since(begin))
				}
			})
		})
	}
}
