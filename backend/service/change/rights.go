package change

import (
	"context"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/query"
)

// callerRights are the rights with which a stream reads. The zero value is for a feed without access control.
type callerRights struct {
	caller access.Caller
	// rights were computed from the policy with this version or a later one.
	rights  *access.Rights
	version uint64
	// era is a context that ends soon after the policy changes; nil without access control.
	era context.Context
}

// rightsOfCaller returns the rights of the caller of ctx under the newest policy. If no policy was read yet, it waits
// for one for a short time.
func (f *Feed) rightsOfCaller(ctx context.Context) (out callerRights, err error) {
	out.caller = access.CallerFrom(ctx)
	// Read these before the rights: if the policy changes after this line, the era ends or the version differs, and the
	// rights are computed again.
	if source := f.cfg.Reader.PolicySource(); source != nil {
		out.era, out.version = source.Era(), source.Version()
	}
	out.rights, err = f.cfg.Reader.RightsNow(ctx)
	return out, err
}

// Rights returns the rights with which the stream reads events and their resources; nil without access control.
func (c *Stream) Rights() *access.Rights {
	if c.rights.era == nil {
		return nil
	}
	return c.rights.rights
}

// Stale reports whether the policy may have changed since the stream computed its rights.
func (c *Stream) Stale() bool {
	if c.rights.era == nil {
		return false
	}
	version := c.feed.cfg.Reader.PolicySource().Version()
	return version == 0 || version != c.rights.version
}

// CheckRights must be called before events are sent. It checks whether the caller's rights have changed, and returns
// the events that may be sent. For a stream that leads a group it does nothing: see [Stream.RefreshRights].
func (c *Stream) CheckRights(ctx context.Context, events []Change) ([]Change, error) {
	if era := c.rights.era; era != nil && era.Err() != nil {
		c.rights.era = c.feed.cfg.Reader.PolicySource().Era()
	}
	if !c.Stale() {
		return events, nil
	}
	// ctx may belong to another caller, because a shared execution runs in the context of one of its callers.
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

// RefreshRights makes the leader of a group use the newest policy. It returns a function that reports whether a
// follower still has the same rights as the leader. While no policy is known, the function returns false. The caller
// holds the lock of the group.
func (c *Stream) RefreshRights() (keeps func(*Stream) bool) {
	c.rights.version = c.feed.cfg.Reader.PolicySource().Version()
	policy := c.feed.cfg.Reader.KnownPolicy()
	return func(f *Stream) bool {
		return policy != nil && policy.RightsOf(f.rights.caller.Identity).Key() == c.rights.rights.Key()
	}
}

// Position returns the cursor of the last position that a leading stream has polled.
func (c *Stream) Position() string {
	if c.watcher == nil {
		return ""
	}
	return c.cursor(c.watcher.Position())
}

// cursor returns the cursor for a log position, with the stamp of the stream's rights, or with unfinished within a
// transition.
func (c *Stream) cursor(at backend.Position) string {
	if c.transition != nil {
		return query.ChangeCursor(at, unfinished)
	}
	return query.ChangeCursor(at, c.rights.rights.Stamp())
}

// LeaveGroup makes a stream whose rights have changed continue by itself, after the shared event with the given cursor.
// If the cursor is empty, the group was sending the snapshot, and the stream sends the snapshot again from the
// beginning.
func (c *Stream) LeaveGroup(cursor string) {
	at, _, err := query.ParseChangeCursor(cursor)
	if err != nil {
		c.state = &snapshot{feed: c.feed, scope: c.scope}
		return
	}
	c.inSync, c.continueFrom = true, at
}

// listen makes the stream wake the leader when the era of the policy ends.
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
