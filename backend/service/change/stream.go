// Package change provides streams of changes. Streams are filtered, and they may begin with a snapshot of the
// resources.
package change

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/body"
	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/hub"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/query"
)

// Stream is one stream of changes. Next must be called by one goroutine; Close may be called by any, and ends the
// stream.
type Stream struct {
	feed   *Feed
	scope  scope
	rights callerRights
	// transition is set while the stream switches to new rights of the caller; else nil.
	transition *transition
	// sendBookmark is set if the stream must send a BOOKMARK because the rights in its cursor have changed.
	sendBookmark bool
	// continueFrom is the position after which the stream continues by itself, in the phase separated; otherwise zero.
	continueFrom backend.Position
	// resnapshot reports whether the stream sends another snapshot when it cannot continue.
	resnapshot bool
	// watcher delivers the changes. It is nil while the snapshot is sent, and while the stream follows a leader. It is
	// set with mu locked.
	watcher *hub.Watcher
	mu      sync.Mutex
	closed  bool // guarded by mu
	// state is the snapshot that is being sent; nil if none is.
	state *snapshot
	// leave releases the place that the stream has reserved at the hub.
	leave func()
	// mark is sent before everything else; nil for none.
	mark *Change
	// inSync reports whether IN_SYNC was sent.
	inSync bool
	// number counts the events of the watcher.
	number uint64
	// ended is the error with which the group of the stream has ended. It is nil if the group has not ended, and after
	// Next has returned the error.
	ended error
	// lastSent is when the stream sent its last event.
	lastSent time.Time
	// notified reports whether the watcher notifies a leader of changes.
	notified bool
	// stopListening ends the wake-ups of the leader by the end of the era; guarded by mu.
	stopListening func() bool
}

// Changes opens a stream. Without a cursor, the stream sends IN_SYNC and then changes as they happen. With a cursor, it
// first sends the changes after the cursor, then IN_SYNC. With Snapshot, and without a cursor or with an expired one,
// it sends RESET, all resources as SNAPSHOT events, IN_SYNC, and then changes.
func (f *Feed) Changes(ctx context.Context, req Request) (*Stream, error) {
	rights, err := f.rightsOfCaller(ctx)
	if err != nil {
		return nil, err
	}
	scope, err := f.scopeOf(rights.rights, req)
	if err != nil {
		return nil, err
	}
	out := &Stream{feed: f, scope: scope, rights: rights, resnapshot: req.Snapshot, lastSent: time.Now()}
	var from backend.Position
	var stamp string
	if req.After != nil {
		if from, stamp, err = query.ParseChangeCursor(*req.After); err != nil {
			return nil, &failure.Error{Code: failure.CodeCursorInvalid, Path: "after", Message: "after: not a cursor of a change; take it from the cursor field of an event"}
		}
	}
	if out.leave, err = f.cfg.Hub.Reserve(); err != nil {
		return nil, failure.Of(err, backend.Key{})
	}
	if req.After == nil && req.Snapshot {
		out.state = &snapshot{feed: f, scope: scope}
		return out, nil
	}
	if req.After != nil && stamp != rights.rights.Stamp() {
		err = rightsChangedError{}
	} else {
		err = out.follow(ctx, from)
	}
	switch {
	case out.restartState(err):
	case err != nil:
		out.leave()
		return nil, failure.Of(err, backend.Key{})
	case req.After == nil:
		out.mark = &Change{Type: InSync, Cursor: out.cursor(out.watcher.Position())}
		out.inSync = true
	}
	return out, nil
}

// follow opens a watch after a position. The hub sends the watch the changes of keys for which covers returns true. The
// hub first uses the namespaces and the lookup of the scope, so that it need not call covers for most of the other
// changes.
func (f *Feed) follow(
	ctx context.Context, scope *scope, covers func(backend.Key) bool, from backend.Position,
) (*hub.Watcher, error) {
	return f.cfg.Hub.Watch(
		ctx, hub.Watch{From: from, Covers: covers, Lookup: scope.lookup(), Namespaces: scope.namespaces()},
	)
}

// follow begins to watch the changes after a position.
func (c *Stream) follow(ctx context.Context, from backend.Position) error {
	covers := c.scope.coverage()
	if c.transition != nil {
		covers = c.transition.covers
	}
	w, err := c.feed.follow(ctx, &c.scope, covers, from)
	if err == nil {
		c.watch(w)
	}
	return err
}

// watch sets the watcher of the stream, which may be nil, and returns the previous one.
func (c *Stream) watch(w *hub.Watcher) (before *hub.Watcher) {
	c.mu.Lock()
	before = c.watcher
	c.watcher = w
	c.number = 0
	closed := c.closed
	c.mu.Unlock()
	if closed && w != nil {
		w.Close()
	}
	return before
}

// Close ends the stream.
func (c *Stream) Close() {
	c.mu.Lock()
	w, stop := c.watcher, c.stopListening
	c.closed = true
	c.mu.Unlock()
	if stop != nil {
		stop()
	}
	if w != nil {
		w.Close()
	}
	c.leave()
}

// Next waits for the next events of the stream and returns at least one. Any error ends the stream. If the caller keeps
// events before it sends them, it must check them again by [Stream.CheckRights].
func (c *Stream) Next(ctx context.Context) ([]Change, error) {
	for {
		out, err := c.next(ctx)
		if err == nil {
			out, err = c.CheckRights(ctx, out)
		}
		if err != nil || len(out) > 0 {
			return out, err
		}
	}
}

// next waits for the next events. It returns no events if the policy may have changed.
func (c *Stream) next(ctx context.Context) ([]Change, error) {
	switch c.phase() {
	case sendingMark:
		mark := *c.mark
		c.mark = nil
		return []Change{mark}, nil
	case sendingState:
		out, err := c.Poll(ctx, nil)
		return out.Changes, err
	}
	out, err := c.events(ctx)
	switch {
	case err == nil:
		return out, nil
	case c.restartState(err):
		return c.nextOfState(ctx)
	}
	return nil, c.failed(err)
}

// events returns the next events of a stream that is not sending the snapshot.
func (c *Stream) events(ctx context.Context) ([]Change, error) {
	if c.phase() == separated {
		from := c.continueFrom
		c.continueFrom = backend.Position{}
		if err := c.follow(ctx, from); err != nil {
			return nil, err
		}
	}
	if c.phase() == inTransition {
		if out, err := c.nextOfTransition(ctx); len(out) > 0 || err != nil {
			return out, err
		}
	}
	out, err := c.Poll(ctx, nil)
	return out.Changes, err
}

// failed converts an error of the stream into the error for its caller.
func (c *Stream) failed(err error) error {
	var over *budget.ExceededError
	if errors.As(err, &over) {
		return over
	}
	out := failure.Of(err, backend.Key{})
	var lagged *backend.LaggedError
	if errors.As(err, &lagged) {
		out.Cursor = c.cursor(lagged.Position)
	}
	return out
}

// Polled is the result of [Stream.Poll].
type Polled struct {
	Changes []Change
	// ResumePoint is the point in the snapshot at which Changes begin; nil after the snapshot.
	ResumePoint *ResumePoint
	// Wait is how long the next poll may be delayed if there are no events.
	Wait time.Duration
}

// Poll returns the next events, or none. During the snapshot it reads the next page. After the snapshot, a stream
// without a leader waits for events. A leading stream waits only until its watch is live. Any error ends the stream.
// Poll then returns the resume point nevertheless.
func (c *Stream) Poll(ctx context.Context, leader Leader) (out Polled, err error) {
	if c.phase() == sendingState {
		// All resources were read. A stream that joined meanwhile must also get the changes up to now.
		if c.state.kind == len(c.state.scope.kinds) && !c.state.position.IsZero() && leader != nil && leader.Late() {
			c.state.late = true
		}
		out.ResumePoint = &ResumePoint{at: *c.state}
		// The resources may be newer than the policy by which they were selected.
		if out.Changes, err = c.nextOfState(ctx); err == nil && c.rights.era != nil {
			err = c.feed.cfg.Reader.AwaitPolicy(ctx)
		}
		out.ResumePoint.record(out.Changes, c.state)
		c.lastSent = time.Now()
		return out, err
	}
	for {
		d, ok, err := c.poll(ctx, leader)
		switch {
		case err != nil:
			return out, err
		case ok:
			out.Changes = c.changes(&d)
			if c.transition != nil { // return, since the watch may be live now and the view can then be taken
				out.Changes = c.transition.translate(out.Changes)
				return out, nil
			}
		case c.rights.era != nil && c.rights.era.Err() != nil && leader == nil:
			return out, nil
		default:
			out.Wait = time.Until(c.lastSent.Add(c.feed.cfg.BookmarkInterval))
			if out.Wait > 0 && !c.sendBookmark {
				return out, nil
			}
			c.sendBookmark = false
			out.Changes = []Change{{Type: Bookmark, Cursor: c.cursor(c.watcher.Position()), Number: c.number}}
		}
		if len(out.Changes) > 0 {
			c.lastSent = time.Now()
			return out, nil
		}
	}
}

// poll returns the next delivery of the watch. ok is false if there is none. Without a leader, poll waits until the
// next bookmark is due or the era ends. With a leader, it waits only while the watch still reads the log.
func (c *Stream) poll(ctx context.Context, leader Leader) (d backend.Delivery, ok bool, err error) {
	switch c.phase() {
	case failed:
		err = c.ended
		c.ended = nil
		return d, false, err
	case led:
		return d, false, backend.ErrClosed
	}
	if leader != nil && !c.notified && c.watcher.Live() {
		c.watcher.Notify(leader.Wake)
		c.notified = true
	}
	c.listen(leader)
	if c.notified {
		return c.watcher.TryNext()
	}
	var bookmark time.Time
	if c.inSync {
		bookmark = c.lastSent.Add(c.feed.cfg.BookmarkInterval)
	}
	if c.sendBookmark {
		bookmark = time.Now()
	}
	spent := budget.From(ctx)
	spent.BeginWait()
	defer spent.EndWait(ctx)
	waiting := ctx
	if c.rights.era != nil && leader == nil {
		var stop context.CancelFunc
		waiting, stop = context.WithCancel(ctx)
		defer stop()
		defer context.AfterFunc(c.rights.era, stop)()
	}
	d, err = c.watcher.NextBefore(waiting, bookmark)
	if errors.Is(err, hub.ErrIdle) || ctx.Err() == nil && waiting.Err() != nil &&
		(errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		return d, false, nil
	}
	if err == nil && !c.watcher.Live() { // the log may be ahead of the policy
		err = c.feed.cfg.Reader.AwaitPolicy(ctx)
	}
	return d, err == nil, err
}

// restartState makes the stream begin another snapshot if the log does not reach back far enough and the request has
// Snapshot. It reports whether it has done so.
func (c *Stream) restartState(err error) bool {
	if !c.resnapshot || !errors.Is(err, backend.ErrPositionExpired) {
		return false
	}
	if w := c.watch(nil); w != nil {
		w.Close()
	}
	c.state, c.transition = &snapshot{feed: c.feed, scope: c.scope}, nil
	return true
}

// changes returns the events of the stream for a delivery.
func (c *Stream) changes(d *backend.Delivery) (out []Change) {
	for i := range d.Events {
		c.number++
		if change, ok := c.scope.change(&d.Events[i]); ok && (c.transition != nil || c.scope.permits(change.Key)) {
			change.Number = c.number
			change.Cursor, change.feed = c.cursor(d.Events[i].Position), c.feed
			out = append(out, change)
		}
	}
	if d.CaughtUp && !c.inSync {
		c.inSync = true
		out = append(out, Change{Type: InSync, Cursor: c.cursor(d.Position)})
	}
	return out
}

// nextOfState sends the next page of the snapshot. After the last page it sends IN_SYNC and opens the watch.
func (c *Stream) nextOfState(ctx context.Context) ([]Change, error) {
	out, err := c.state.next(ctx)
	if err == nil && len(out) == 0 {
		at := c.state.position
		if err = c.follow(ctx, at); err == nil {
			c.state, c.inSync = nil, true
			return []Change{{Type: InSync, Cursor: c.cursor(at)}}, nil
		}
	}
	if errors.Is(err, backend.ErrPositionExpired) {
		out, err = c.state.restart(ctx)
	}
	if err != nil {
		return nil, c.failed(err)
	}
	return out, nil
}

// Body returns the decoded resource of the event. It is nil for a mark, and for a DELETED resource that cannot be read.
// For another resource that cannot be read, the error is UNREADABLE, and the stream continues.
func (c *Change) Body() (*body.Body, error) {
	if c.Stored == nil || c.body != nil {
		return c.body, nil
	}
	k, err := c.feed.cfg.Kinds.Find(c.Stored.Kind)
	if err != nil {
		return nil, err
	}
	b, err := c.feed.cache.bodyOf(k, c.Stored)
	if err == nil {
		return b, nil
	}
	c.feed.cfg.Unreadable.Note(c.Stored, err)
	if c.Type == Deleted {
		return nil, nil
	}
	return nil, failure.Of(err, c.Stored.Key)
}
