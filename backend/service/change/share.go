package change

import (
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/query"
)

// JoinPoint is a point at which a stream can join another stream of the same scope.
type JoinPoint int

// The join points. Busy means that the stream cannot be joined now. AtState means that it is about to read its first
// snapshot, and AtStateAgain that it is about to read another one. AtRest means that it is in sync and has sent all
// events. If two streams of the same scope are at the same join point, other than Busy, they send the same events from
// now on.
const (
	Busy JoinPoint = iota
	AtState
	AtStateAgain // after the stream was in sync
	AtRest
)

// JoinPoint returns the join point at which the stream is now.
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

// HandOver returns a new stream that continues at the same point, to lead a group (see [Stream.Poll]). The old stream
// can later continue by itself after [Stream.Resume].
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

// Join makes the stream a follower of a leading stream that is, or was, at the same join point. ok is false if the
// stream would miss an event. The stream need not send the leader's events again up to the one with the [Change.Number]
// seen.
func (c *Stream) Join(leader *Stream) (seen uint64, ok bool) {
	if c.rights.version < leader.rights.version {
		return 0, false // the leader would not check again whether the follower has the same rights
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

// CaughtUpWith reports whether the stream has delivered everything that leader has delivered or queued. seen has the
// meaning described at [hub.Watcher.CaughtUpWith]. Unlike Join, CaughtUpWith does not end the stream.
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

// SendsState reports whether the stream is sending a snapshot.
func (c *Stream) SendsState() bool { return c.state != nil }

// Resume makes a stream that was led continue by itself. from is the point in the snapshot at which it continues. If
// from is nil, the group was past the snapshot and has ended with err. For a stream that was too slow for its group,
// err is a [backend.LaggedError].
func (c *Stream) Resume(from *ResumePoint, err error) {
	if from != nil {
		state := from.at
		c.state = &state
		return
	}
	c.inSync = true // without a resume point, the group was past the snapshot
	if !c.restartState(err) {
		c.ended = err
	}
}

// Lagged returns the error for a stream that is too slow for the events of its group. cursor is the cursor of the last
// event that the stream has sent.
func (c *Stream) Lagged(cursor string) error {
	c.feed.cfg.Hub.NoteLagged()
	at, _, err := query.ParseChangeCursor(cursor)
	if err != nil {
		return backend.ErrLagged
	}
	return &backend.LaggedError{Position: at}
}

// Leader runs a stream for a group of streams, by calling [Stream.Poll].
type Leader interface {
	// Wake is called when there may be an event to poll. It must not block.
	Wake()
	// Late reports whether a stream has joined since the last call. It is called before the end of a snapshot. If it
	// returns true, the snapshot must include all changes up to now.
	Late() bool
}
