package transport

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// timed is a context with a deadline that costs no timer until somebody waits for its
// end: most operations are over before they ask.
type timed struct {
	context.Context
	begin, end time.Time

	over atomic.Bool // it was cancelled

	mu   sync.Mutex // guards stop, and that armed is set once
	stop context.CancelFunc
	// armed is a context of the standard library; nil until somebody waits.
	armed atomic.Pointer[context.Context]
}

// timedFrom is [context.WithTimeout] without its timer, from a time that is now.
func timedFrom(ctx context.Context, now time.Time, d time.Duration) *timed {
	out := within(ctx, now.Add(d))
	out.begin = now
	return out
}

// beginOf is when the operation of a context began.
func beginOf(ctx context.Context) time.Time {
	if t, ok := ctx.(*timed); ok && !t.begin.IsZero() {
		return t.begin
	}
	return time.Now()
}

// within is [context.WithDeadline] without its timer.
func within(ctx context.Context, end time.Time) *timed {
	if sooner, ok := ctx.Deadline(); ok && sooner.Before(end) {
		end = sooner
	}
	return &timed{Context: ctx, end: end}
}

// Deadline is part of [context.Context].
func (t *timed) Deadline() (time.Time, bool) { return t.end, true }

// Done is part of [context.Context].
func (t *timed) Done() <-chan struct{} { return t.arm().Done() }

// Err is part of [context.Context].
func (t *timed) Err() error {
	if armed := t.armed.Load(); armed != nil {
		return (*armed).Err()
	}
	if err := t.Context.Err(); err != nil {
		return err
	}
	if t.over.Load() || !time.Now().Before(t.end) {
		return t.arm().Err()
	}
	return nil
}

// Value is part of [context.Context]. Contexts that derive from this one find the armed
// one by it.
func (t *timed) Value(key any) any {
	if armed := t.armed.Load(); armed != nil {
		return (*armed).Value(key)
	}
	return t.Context.Value(key)
}

// arm returns the context that has a timer.
func (t *timed) arm() context.Context {
	if armed := t.armed.Load(); armed != nil {
		return *armed
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if armed := t.armed.Load(); armed != nil {
		return *armed
	}
	armed, stop := context.WithDeadline(t.Context, t.end)
	if t.over.Load() {
		stop()
	}
	t.stop = stop
	t.armed.Store(&armed)
	return armed
}

// cancel ends the context.
func (t *timed) cancel() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over.Store(true); t.stop != nil {
		t.stop()
	}
}
