package change

import (
	"context"
	"errors"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/hub"
)

// Moment says what a stream does next, for who would go on with an equal one.
type Moment int

// The moments. Two streams of the same scope that are at rest tell the same from then
// on, and so do two that are about to read the state.
const (
	Busy Moment = iota
	AtState
	AtStateAgain // after it was in sync: the state ends with BOOKMARK
	AtRest
)

// Moment is at which the stream is. One is at rest when it is in sync and all that has
// happened was told.
func (c *Stream) Moment() Moment {
	switch {
	case c.state != nil && !c.state.position.IsZero():
	case c.state != nil && c.inSync:
		return AtStateAgain
	case c.state != nil:
		return AtState
	case c.mark == nil && c.inSync && c.ended == nil && c.watcher != nil && c.watcher.Empty():
		return AtRest
	}
	return Busy
}

// HandOver returns a stream that goes on in the place of this one, for all that are at the
// same moment; it is asked by Poll. This one goes on when it is told to [Stream.Resume].
func (c *Stream) HandOver() *Stream {
	out := &Stream{feed: c.feed, scope: c.scope, inSync: c.inSync, state: c.state, leave: func() {}, silent: time.Now()}
	number := c.number
	out.watch(c.watch(nil))
	out.number, c.state = number, nil
	return out
}

// Join leaves what comes next to a stream that leads, if both are at rest and none of them
// misses anything. seen is the [Change.Number] up to which this one has told the leader's
// events.
func (c *Stream) Join(leader *Stream) (seen uint64, ok bool) {
	if seen, ok = c.Level(leader); ok {
		c.watch(nil).Close()
	}
	return seen, ok
}

// Quit leaves the state to a stream that leads, which begins with it.
func (c *Stream) Quit() { c.state = nil }

// Level is Join without an end: how many of another leader's events this leader, of whose
// events nothing waits, has told.
func (c *Stream) Level(leader *Stream) (seen uint64, ok bool) {
	leader.mu.Lock()
	into := leader.watcher
	leader.mu.Unlock()
	if c.watcher == nil || into == nil {
		return 0, false
	}
	return c.watcher.Level(into)
}

// Place is where in the state a stream is: between two of its pages.
type Place struct{ at snapshot }

// Place is where the next Poll goes on; nil once the state was told.
func (c *Stream) Place() *Place {
	if c.state == nil {
		return nil
	}
	return &Place{*c.state}
}

// Finishing says that the next Poll tells the end of the state. With late it first tells
// what has happened until then.
func (c *Stream) Finishing() bool {
	return c.state != nil && c.state.kind == len(c.state.scope.kinds) && !c.state.position.IsZero()
}

// Late says that somebody joined who may know of later changes than the state has.
func (c *Stream) Late() { c.state.late = true }

// Resume makes the stream go on by itself, from a place in the state or with the error
// that ended what it shared. What waits too long to be told is a [backend.LaggedError].
func (c *Stream) Resume(from *Place, err error) {
	if from != nil {
		state := from.at
		c.state = &state
		return
	}
	c.inSync = true // what is shared has no place when it is live
	if !c.beginAgain(err) {
		c.ended = err
	}
}

// Lagged is the error of a stream that tells too slowly what it shares with others.
func (c *Stream) Lagged(cursor string) error {
	c.feed.hub.NoteLagged()
	at, err := backend.ParsePosition(cursor)
	if err != nil {
		return backend.ErrLagged
	}
	return &backend.LaggedError{Position: at}
}

// Poll returns the next events of a stream that leads. It reads the state, and else does
// not wait: if there are none, wait is when to ask again at the latest, and notify is
// called before, quickly, when something happens. Any error ends the stream.
func (c *Stream) Poll(ctx context.Context, notify func()) (out []Change, wait time.Duration, err error) {
	if c.state != nil {
		out, err = c.nextOfState(ctx)
		c.silent = time.Now()
		return out, 0, err
	}
	for {
		d, ok, err := c.poll(ctx, notify)
		switch {
		case err != nil:
			return nil, 0, err
		case !ok:
			if wait := time.Until(c.silent.Add(c.feed.bookmarks)); wait > 0 {
				return nil, wait, nil
			}
			out = []Change{{Type: Bookmark, Cursor: c.watcher.Position().String(), Number: c.number}}
		default:
			out = c.changes(&d)
		}
		if len(out) > 0 {
			c.silent = time.Now()
			return out, 0, nil
		}
	}
}

// poll is what has happened. A stream whose watch still reads the log waits for that.
func (c *Stream) poll(ctx context.Context, notify func()) (d backend.Delivery, ok bool, err error) {
	if !c.notified {
		if !c.watcher.Live() {
			d, err = c.wait(ctx, c.silent.Add(c.feed.bookmarks))
			if errors.Is(err, hub.ErrIdle) {
				return d, false, nil
			}
			return d, err == nil, err
		}
		c.watcher.Notify(notify)
		c.notified = true
	}
	return c.watcher.TryNext()
}
