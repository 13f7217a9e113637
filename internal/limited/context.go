// Package limited has contexts with a deadline that cost no timer until somebody waits for
// their end: most operations are over before anybody does.
package limited

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Context is a [context.Context] with a deadline. [Context.Begin] or [Until] begins it,
// [Context.Cancel] ends it.
type Context struct {
	context.Context
	end time.Time

	over atomic.Bool // it was cancelled

	mu   sync.Mutex // guards stop, and that armed is set once
	stop context.CancelFunc
	// armed is a context of the standard library; nil until somebody waits.
	armed atomic.Pointer[context.Context]
}

// Until is [context.WithDeadline] without its timer.
func Until(ctx context.Context, end time.Time) *Context {
	out := &Context{}
	out.Begin(ctx, end)
	return out
}

// Begin makes the context, the zero value before, one that ends with ctx or at a time,
// whichever is sooner.
func (c *Context) Begin(ctx context.Context, end time.Time) {
	if sooner, ok := ctx.Deadline(); ok && sooner.Before(end) {
		end = sooner
	}
	c.Context, c.end = ctx, end
}

// Deadline is part of [context.Context].
func (c *Context) Deadline() (time.Time, bool) { return c.end, true }

// Done is part of [context.Context].
func (c *Context) Done() <-chan struct{} { return c.arm().Done() }

// Err is part of [context.Context].
func (c *Context) Err() error {
	if armed := c.armed.Load(); armed != nil {
		return (*armed).Err()
	}
	if err := c.Context.Err(); err != nil {
		return err
	}
	if c.over.Load() || !time.Now().Before(c.end) {
		return c.arm().Err()
	}
	return nil
}

// Value is part of [context.Context]. Contexts that derive from this one find the armed
// one by it.
func (c *Context) Value(key any) any {
	if armed := c.armed.Load(); armed != nil {
		return (*armed).Value(key)
	}
	return c.Context.Value(key)
}

// arm returns the context that has a timer.
func (c *Context) arm() context.Context {
	if armed := c.armed.Load(); armed != nil {
		return *armed
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if armed := c.armed.Load(); armed != nil {
		return *armed
	}
	armed, stop := context.WithDeadline(c.Context, c.end)
	if c.over.Load() {
		stop()
	}
	c.stop = stop
	c.armed.Store(&armed)
	return armed
}

// Cancel ends the context.
func (c *Context) Cancel() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over.Store(true); c.stop != nil {
		c.stop()
	}
}
