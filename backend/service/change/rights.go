package change

import (
	"context"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/query"
)

// callerRights are the caller's rights when the stream last asked for them. The zero value is for a
// feed without access control.
type callerRights struct {
	caller access.Caller
	// rights are those of a policy that is at least as new as version.
	rights  *access.Rights
	version uint64
	// era is the time during which the policy stays the same: a context that ends soon after it has
	// changed; nil without access control.
	era context.Context
}

// rightsOfCaller returns the rights of the caller of ctx by the newest policy. If the policy is
// not known yet, it waits for it briefly.
func (f *Feed) rightsOfCaller(ctx context.Context) (out callerRights, err error) {
	out.caller = access.CallerFrom(ctx)
	// A later change of the policy ends the era or changes the version.
	if source := f.cfg.Reader.PolicySource(); source != nil {
		out.era, out.version = source.Era(), source.Version()
	}
	out.rights, err = f.cfg.Reader.RightsNow(ctx)
	return out, err
}

// Rights returns the rights by which events and the resources that they lead to are read; nil
// without access control.
func (c *Stream) Rights() *access.Rights {
	if c.rights.era == nil {
		return nil
	}
	return c.rights.rights
}

// Stale reports whether the policy may have changed since the stream asked for the
// rights.
func (c *Stream) Stale() bool {
	if c.rights.era == nil {
		return false
	}
	version := c.feed.cfg.Reader.PolicySource().Version()
	return version == 0 || version != c.rights.version
}

// CheckRights checks whether the caller's rights have changed, before events are sent, and returns
// the events that may be sent. It does nothing for a stream that leads others: see
// [Stream.RefreshRights].
func (c *Stream) CheckRights(ctx context.Context, events []Change) ([]Change, error) {
	if era := c.rights.era; era != nil && era.Err() != nil {
		c.rights.era = c.feed.cfg.Reader.PolicySource().Era()
	}
	if !c.Stale() {
		return events, nil
	}
	// A shared execution runs in the context of one of its callers.
	now, err := c.feed.rightsOfCaller(access.WithCaller(ctx, c.rights.caller))
	if err != nil {
		return nil, failure.Of(err, backend.Key{})
	}
	before := c.rights.rights
	c.rights = now
	if now.rights.Key() == before.Key() {
		return events, nil
	}
	to := c.scope.under(now.rights)
	switch {
	case c.scope.same(&to):
		c.sendBookmark = c.sendBookmark ||
			c.state == nil && c.transition == nil && c.inSync && now.rights.Stamp() != before.Stamp()
		return events, nil
	case c.state != nil:
		c.scope = to
		c.state = &snapshot{feed: c.feed, scope: to}
		return nil, nil
	}
	if c.transition != nil {
		c.transition.forgetRegained(events)
	}
	c.beginTransition(to)
	return c.transition.translate(events), nil
}

// RefreshRights makes a leading stream use the newest policy, and returns a function that reports
// whether a follower still has equal rights. While the policy is not known the function returns
// false. The caller holds the lock of the group.
func (c *Stream) RefreshRights() (keeps func(*Stream) bool) {
	c.rights.version = c.feed.cfg.Reader.PolicySource().Version()
	policy := c.feed.cfg.Reader.KnownPolicy()
	return func(f *Stream) bool {
		return policy != nil && policy.RightsOf(f.rights.caller.Identity).Key() == c.rights.rights.Key()
	}
}

// Position returns the cursor up to which a leading stream was polled.
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
	return query.ChangeCursor(at, c.rights.rights.Stamp())
}

// LeaveGroup makes a stream whose rights have changed go on by itself, after the shared events up
// to a cursor. An empty cursor means during the snapshot, which is then sent again.
func (c *Stream) LeaveGroup(cursor string) {
	at, _, err := query.ParseChangeCursor(cursor)
	if err != nil {
		c.state = &snapshot{feed: c.feed, scope: c.scope}
		return
	}
	c.inSync, c.continueFrom = true, at
}

// listen makes the end of the era wake the leader of a stream.
func (c *Stream) listen(leader Leader) {
	if leader == nil || c.rights.era == nil || c.stopListening != nil && c.rights.era.Err() == nil {
		return
	}
	c.rights.era = c.feed.cfg.Reader.PolicySource().Era()
	stop := context.AfterFunc(c.rights.era, leader.Wake)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		stop()
	}
	c.stopListening = stop
}
