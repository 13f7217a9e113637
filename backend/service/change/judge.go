package change

import (
	"context"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/query"
)

// judge holds the caller's rights as a stream last asked for them. The zero value is for a feed without
// access control.
type judge struct {
	caller access.Caller
	// rights by the policy of version judged, which was the newest or is newer.
	rights *access.Rights
	judged uint64
	// era ends when the policy has changed since the rights were asked for; nil without access control.
	era context.Context
}

// judge asks for the rights of the caller of ctx by the newest policy. It waits for a moment until the policy is known.
func (f *Feed) judge(ctx context.Context) (out judge, err error) {
	out.caller = access.CallerFrom(ctx)
	if source := f.cfg.Reader.PolicySource(); source != nil { // what changes from here on ends the era, or makes another version
		out.era, out.judged = source.Era(), source.Version()
	}
	out.rights, err = f.cfg.Reader.RightsNow(ctx)
	return out, err
}

// Rights returns the rights by which events, and everything that they lead to, are read; nil without access
// control.
func (c *Stream) Rights() *access.Rights {
	if c.judge.era == nil {
		return nil
	}
	return c.judge.rights
}

// Stale reports whether the policy may have changed since the stream was judged.
func (c *Stream) Stale() bool {
	if c.judge.era == nil {
		return false
	}
	version := c.feed.cfg.Reader.PolicySource().Version()
	return version == 0 || version != c.judge.judged
}

// Judge checks for a change of the caller's rights before returned events are sent. It returns the events
// that may be sent. A stream that leads others is not judged: see [Stream.Rejudge].
func (c *Stream) Judge(ctx context.Context, events []Change) ([]Change, error) {
	if era := c.judge.era; era != nil && era.Err() != nil {
		c.judge.era = c.feed.cfg.Reader.PolicySource().Era()
	}
	if !c.Stale() {
		return events, nil
	}
	now, err := c.feed.judge(access.WithCaller(ctx, c.judge.caller)) // what is shared runs for one of its callers
	if err != nil {
		return nil, failure.Of(err, backend.Key{})
	}
	before := c.judge.rights
	c.judge = now
	if now.rights.Key() == before.Key() {
		return events, nil
	}
	to := c.scope.under(now.rights)
	switch {
	case c.scope.same(&to):
		c.tells = c.tells || c.state == nil && c.transition == nil && c.inSync && now.rights.Stamp() != before.Stamp()
		return events, nil
	case c.state != nil:
		c.scope = to
		c.state = &snapshot{feed: c.feed, scope: to}
		return nil, nil
	}
	if c.transition != nil {
		c.transition.told(events)
	}
	c.turn(to)
	return c.transition.pass(events), nil
}

// Rejudge makes a stream that leads others take the newest policy, and returns a function that reports whether one of them
// still has its rights; not while the policy is not known. The caller holds the lock of the group.
func (c *Stream) Rejudge() (keeps func(*Stream) bool) {
	c.judge.judged = c.feed.cfg.Reader.PolicySource().Version()
	policy := c.feed.cfg.Reader.KnownPolicy()
	return func(f *Stream) bool {
		return policy != nil && policy.RightsOf(f.judge.caller.Identity).Key() == c.judge.rights.Key()
	}
}

// Position returns the cursor up to which a stream that leads others was polled.
func (c *Stream) Position() string {
	if c.watcher == nil {
		return ""
	}
	return c.cursor(c.watcher.Position())
}

// cursor returns the cursor of a position of the stream.
func (c *Stream) cursor(at backend.Position) string {
	if c.transition != nil {
		return query.ChangeCursor(at, unfinished)
	}
	return query.ChangeCursor(at, c.judge.rights.Stamp())
}

// Depart makes a stream whose rights have changed go on by itself, after the shared events up to a cursor.
// The cursor is empty within the state, which is sent again.
func (c *Stream) Depart(cursor string) {
	at, _, err := query.ParseChangeCursor(cursor)
	if err != nil {
		c.state = &snapshot{feed: c.feed, scope: c.scope}
		return
	}
	c.inSync, c.from = true, at
}

// listen has the leader of a stream woken at the end of the era.
func (c *Stream) listen(leader Leader) {
	if leader == nil || c.judge.era == nil || c.deaf != nil && c.judge.era.Err() == nil {
		return
	}
	c.judge.era = c.feed.cfg.Reader.PolicySource().Era()
	stop := context.AfterFunc(c.judge.era, leader.Wake)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		stop()
	}
	c.deaf = stop
}
