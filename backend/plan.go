package backend

import (
	"errors"
	"time"
)

// View is the state of a shard that a batch is judged against, under a lock
// that the driver holds until the changes are made.
type View interface {
	// Stored returns what is stored under a key, expired or not, nil if nothing
	// is. What does not decode is ErrUnreadable.
	Stored(k Key) (*Resource, error)
	// Bound says whether a resource other than that of the key, live at that
	// time, holds a bound reference to the key.
	Bound(k Key, now time.Time) (bool, error)
}

// Plan judges a batch against the state that view shows and works out its
// changes, for drivers that can hold a lock over both. log is that of the shard;
// the changes get the revisions that follow in it. Nothing is written, and log
// stays as it is: see [LogState.Follow]. now must be in UTC.
func Plan(b Batch, now time.Time, log *LogState, view View) (Result, []Change, error) {
	if now.After(b.Deadline) {
		return Result{}, nil, ErrDeadline
	}
	p := planner{requestID: b.RequestID, now: now.UTC().Truncate(time.Millisecond), log: log.Clone()}
	stored := make([]*Resource, len(b.Actions)) // expired or not
	damaged := make([]bool, len(b.Actions))
	for i, a := range b.Actions {
		var err error
		if stored[i], damaged[i], err = a.stored(view); err != nil {
			return Result{}, nil, err
		}
		if err := a.judge(stored[i], now, view); err != nil {
			var ce *ConditionError
			if errors.As(err, &ce) {
				ce.Action = i
			}
			return Result{}, nil, err
		}
	}
	res := Result{Resources: make([]*Resource, len(b.Actions)), Revisions: make([]Revision, len(b.Actions))}
	for i, a := range b.Actions {
		old := stored[i]
		if old != nil && old.ExpiredAt(now) {
			if a.Do == DeedPut {
				p.delete(old, false)
			}
			old = nil
		}
		switch a.Do {
		case DeedPut:
			res.Resources[i], res.Revisions[i] = p.put(a, old)
		case DeedDelete:
			res.Resources[i], res.Revisions[i] = old, p.delete(old, damaged[i])
		case DeedReindex:
			res.Resources[i] = p.reindex(a, old)
		case DeedCheck:
			res.Resources[i] = old
		}
	}
	return res, p.changes, nil
}

// stored looks up the action's key. What does not decode can be deleted by
// whoever asks nothing else of it.
func (a *Action) stored(view View) (r *Resource, damaged bool, err error) {
	r, err = view.Stored(a.Key)
	if errors.Is(err, ErrUnreadable) && a.Do == DeedDelete && a.If == (Condition{Presence: a.If.Presence}) {
		return &Resource{Key: a.Key}, true, nil
	}
	return r, false, err
}

// judge says whether the action's condition holds: nil, a *ConditionError, or
// what went wrong with the view.
func (a *Action) judge(stored *Resource, now time.Time, view View) error {
	live := stored
	if live != nil && live.ExpiredAt(now) {
		live = nil
	}
	var failed error // of the view
	err := a.If.Check(live, func() (bool, error) {
		var bound bool
		bound, failed = view.Bound(a.Key, now)
		return bound, failed
	})
	if failed != nil {
		return failed
	}
	if err == nil && a.Do == DeedDelete && live == nil {
		err = ErrNotFound
	}
	if err != nil {
		return &ConditionError{Key: a.Key, Current: live, Err: err}
	}
	return nil
}

// planner collects the changes of a batch whose conditions hold.
type planner struct {
	requestID string
	now       time.Time // to the millisecond
	log       LogState  // after the changes
	changes   []Change
}

// add takes the next change.
func (p *planner) add(c Change) {
	p.log.Follow(&c)
	p.changes = append(p.changes, c)
}

func (p *planner) delete(old *Resource, damaged bool) Revision {
	c := deletion(old, p.log.Next(old.Key), p.requestID, p.now)
	c.Damaged = damaged
	p.add(c)
	return c.Revision
}

func (p *planner) put(a Action, old *Resource) (*Resource, Revision) {
	rev := p.log.Next(a.Key)
	r := &Resource{
		Key: a.Key,
		Envelope: Envelope{
			UID: a.Put.UID, Revision: rev, SpecRevision: rev, Deleting: a.Put.Deleting,
			Fingerprint: a.Put.Fingerprint, CreatedAt: p.now, UpdatedAt: p.now,
		},
		Rows: a.Put.Rows,
		Refs: a.Put.Refs,
		Body: a.Put.Body,
	}
	if !a.Put.ExpiresAt.IsZero() {
		r.ExpiresAt = a.Put.ExpiresAt.UTC().Truncate(time.Millisecond)
	}
	ev := Event{Type: Added, Revision: rev, Resource: r, RequestID: p.requestID, Time: p.now}
	if old != nil {
		ev.Type, ev.RowsBefore, ev.FingerprintBefore = Modified, old.Rows, old.Fingerprint
		r.UID, r.CreatedAt = old.UID, old.CreatedAt
		if !a.Put.Caller {
			r.SpecRevision = old.SpecRevision
		}
	}
	p.add(change(old, r, ev))
	return r, rev
}

func (p *planner) reindex(a Action, old *Resource) *Resource {
	r := *old
	r.Rows, r.Refs, r.Fingerprint = a.Put.Rows, a.Put.Refs, a.Put.Fingerprint
	p.add(Change{Before: old, After: &r})
	return &r
}

// Expire returns the change that purges an expired resource, the next one after
// those that log has.
func Expire(r *Resource, log *LogState, now time.Time) Change {
	return deletion(r, log.Next(r.Key), "", now.UTC().Truncate(time.Millisecond))
}

func deletion(old *Resource, rev Revision, requestID string, now time.Time) Change {
	return change(old, nil, Event{
		Type: Deleted, Revision: rev, Resource: old, RowsBefore: old.Rows, FingerprintBefore: old.Fingerprint, RequestID: requestID, Time: now,
	})
}

// change is one with a revision. The log has no entries of internal records.
func change(before, after *Resource, e Event) Change {
	c := Change{Before: before, After: after, Revision: e.Revision}
	if !e.Resource.Internal() {
		c.Event = e
	}
	return c
}
