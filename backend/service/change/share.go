package change

import (
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/query"
)

// JoinPoint is a state of a stream in which it may join an equal one.
type JoinPoint int

// The join points. Two streams of the same scope have the same events from then on if both are at
// rest, or both are about to read the snapshot.
const (
	Busy JoinPoint = iota
	AtState
	AtStateAgain // after it was in sync
	AtRest
)

// JoinPoint returns the join point at which the stream is. It is at rest when it is in sync and has
// sent all events.
func (c *Stream) JoinPoint() JoinPoint {
	if c.Stale() || c.sendBookmark {
		return Busy
	}
	switch c.phase() {
	case sendingState:
		switch {
		case !c.state.position.IsZero():
			return Busy
		case c.inSync:
			return AtStateAgain
		}
		return AtState
	case following:
		if c.inSync && c.watcher.Empty() {
			return AtRest
		}
	}
	return Busy
}

// HandOver returns a stream that continues at the same point and leads others by Poll. The old
// stream goes on by itself after [Stream.Resume].
func (c *Stream) HandOver() *Stream {
	out := &Stream{
		feed:     c.feed,
		scope:    c.scope,
		rights:   c.rights,
		inSync:   c.inSync,
		state:    c.state,
		leave:    func() {},
		lastSent: time.Now(),
	}
	number := c.number
	out.watch(c.watch(nil))
	out.number, c.state = number, nil
	return out
}

// Join leaves further events to a leading stream that is, or was, at the same join point. It
// returns false if the stream would miss something. seen is the [Change.Number] up to which the
// stream has sent the leader's events.
func (c *Stream) Join(leader *Stream) (seen uint64, ok bool) {
	if c.rights.version < leader.rights.version {
		return 0, false // the leader does not ask for its rights by that policy again
	}
	if c.state != nil {
		c.state = nil
		return 0, true
	}
	seen, ok = c.CaughtUpWith(leader)
	if ok {
		c.watch(nil).Close()
	}
	return seen, ok
}

// CaughtUpWith reports whether the stream has delivered everything that leader has delivered or queued, as
// [hub.Watcher.CaughtUpWith] does, which also explains seen. Unlike Join it does not end the stream.
func (c *Stream) CaughtUpWith(leader *Stream) (seen uint64, ok bool) {
	if c.rights.version < leader.rights.version {
		return 0, false
	}
	leader.mu.Lock()
	into := leader.watcher
	leader.mu.Unlock()
	if c.watcher == nil || into == nil {
		return 0, false
	}
	return c.watcher.CaughtUpWith(into)
}

// SendsState reports whether the stream is sending the snapshot.
func (c *Stream) SendsState() bool { return c.state != nil }

// Resume makes the stream go on by itself, from a point in the snapshot, or with the error
// that ended the shared stream. An event that waits too long is a
// [backend.LaggedError].
func (c *Stream) Resume(from *ResumePoint, err error) {
	if from != nil {
		state := from.at
		c.state = &state
		return
	}
	c.inSync = true // shared streams that are live have no place
	if !c.restartState(err) {
		c.ended = err
	}
}

// Lagged returns the error of a stream that is too slow for shared events.
func (c *Stream) Lagged(cursor string) error {
	c.feed.cfg.Hub.NoteLagged()
	at, _, err := query.ParseChangeCursor(cursor)
	if err != nil {
		return backend.ErrLagged
	}
	return &backend.LaggedError{Position: at}
}

// Leader polls a stream for all streams that share it.
type Leader interface {
	// Wake is called when something has happened. It must be quick.
	Wake()
	// Late reports whether a stream has joined since the last call. It is called before the end of
	// the snapshot is sent, which must follow everything that had happened when the last one joined.
	Late() bool
}
