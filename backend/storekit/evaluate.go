package storekit

import (
	"errors"
	"time"

	"github.com/sluicegw/sluice/backend"
)

// ShardState is the state of a shard against which a batch is checked. The driver must hold a lock from the check until
// the writes are done.
type ShardState interface {
	// Stored returns the resource under a key; nil if there is none. It may be expired. For a record that cannot be
	// decoded the error is ErrUnreadable.
	Stored(k backend.Key) (*backend.Resource, error)
	// Bound reports whether another resource that is live at the time now has a bound reference to the key.
	Bound(k backend.Key, now time.Time) (bool, error)
}

// Evaluate checks the conditions of a batch and returns its result and writes. It writes nothing itself. The driver
// must hold a lock over this call and the writes. log is the log of the shard. If Evaluate returns no error, it has
// advanced the revisions of log by the writes. now must be in UTC.
func Evaluate(b backend.Batch, now time.Time, log *LogState, state ShardState) (backend.Result, []Write, error) {
	if now.After(b.Deadline) {
		return backend.Result{}, nil, backend.ErrDeadline
	}
	p := ledger{requestID: b.RequestID, actor: b.Actor, now: now.Truncate(time.Millisecond), log: log}
	stored := make([]*backend.Resource, len(b.Actions)) // including expired resources
	damaged := make([]bool, len(b.Actions))
	for i := range b.Actions {
		a := &b.Actions[i]
		var err error
		if stored[i], damaged[i], err = find(a, state); err != nil {
			return backend.Result{}, nil, err
		}
		if err := checkCondition(a, stored[i], now, state); err != nil {
			var ce *backend.ConditionError
			if errors.As(err, &ce) {
				ce.Action = i
			}
			return backend.Result{}, nil, err
		}
	}
	res := backend.Result{
		Resources: make([]*backend.Resource, len(b.Actions)),
		Revisions: make([]backend.Revision, len(b.Actions)),
	}
	p.writes = make([]Write, 0, len(b.Actions))
	for i := range b.Actions {
		a, old := &b.Actions[i], stored[i]
		if old != nil && old.ExpiredAt(now) {
			if a.Op == backend.OpPut {
				p.delete(old, false)
			}
			old = nil
		}
		switch a.Op {
		case backend.OpPut:
			res.Resources[i], res.Revisions[i] = p.put(a, old)
		case backend.OpDelete:
			res.Resources[i], res.Revisions[i] = old, p.delete(old, damaged[i])
		case backend.OpRebind:
			res.Resources[i] = p.rebind(a, old)
		case backend.OpCheck:
			res.Resources[i] = old
		}
	}
	return res, p.writes, nil
}

// find looks up the key of an action. damaged reports whether the record cannot be decoded. That is only accepted for a
// delete whose condition is about presence only; otherwise it is an error.
func find(a *backend.Action, state ShardState) (r *backend.Resource, damaged bool, err error) {
	r, err = state.Stored(a.Key)
	if errors.Is(err, backend.ErrUnreadable) && a.Op == backend.OpDelete &&
		a.If == (backend.Condition{Presence: a.If.Presence}) {
		return &backend.Resource{Key: a.Key}, true, nil
	}
	return r, false, err
}

// checkCondition checks the condition of an action. It returns nil, a *ConditionError, or an error of state.
func checkCondition(a *backend.Action, stored *backend.Resource, now time.Time, state ShardState) error {
	live := stored
	if live != nil && live.ExpiredAt(now) {
		live = nil
	}
	var failed error // the error of state.Bound
	err := a.If.Check(live, func() (bool, error) {
		var bound bool
		bound, failed = state.Bound(a.Key, now)
		return bound, failed
	})
	if failed != nil {
		return failed
	}
	if err == nil && a.Op == backend.OpDelete && live == nil {
		err = backend.ErrNotFound
	}
	if err != nil {
		return &backend.ConditionError{Key: a.Key, Current: live, Err: err}
	}
	return nil
}

// ledger collects the writes of a batch after its conditions were checked.
type ledger struct {
	requestID, actor string
	now              time.Time // to the millisecond
	log              *LogState // gives each write its revision
	writes           []Write
}

func (p *ledger) delete(old *backend.Resource, damaged bool) backend.Revision {
	w := Expire(old, p.log, p.now)
	w.Damaged = damaged
	if w.Logged() {
		w.Event.RequestID, w.Event.Actor = p.requestID, p.actor
	}
	p.writes = append(p.writes, w)
	return w.Revision
}

func (p *ledger) put(a *backend.Action, old *backend.Resource) (*backend.Resource, backend.Revision) {
	rev := p.log.Next(a.Key)
	r := &backend.Resource{
		Key: a.Key,
		Envelope: backend.Envelope{
			UID: a.Put.UID, Revision: rev, SpecRevision: rev, Deleting: a.Put.Deleting,
			Declared: a.Put.Declared, BindingVersion: 1, CreatedAt: p.now, UpdatedAt: p.now,
		},
		Refs: a.Put.Refs,
		Body: a.Put.Body,
	}
	if !a.Put.CreatedAt.IsZero() {
		r.CreatedAt = a.Put.CreatedAt.UTC().Truncate(time.Millisecond)
		r.UpdatedAt = a.Put.UpdatedAt.UTC().Truncate(time.Millisecond)
	}
	if a.Put.Finalizers != nil {
		r.Finalizers = *a.Put.Finalizers
	} else if old != nil {
		r.Finalizers = old.Finalizers
	}
	if !a.Put.ExpiresAt.IsZero() {
		r.ExpiresAt = a.Put.ExpiresAt.UTC().Truncate(time.Millisecond)
	}
	ev := backend.Event{
		Type:      backend.Added,
		Revision:  rev,
		Resource:  r,
		RequestID: p.requestID,
		Actor:     p.actor,
		Time:      p.now,
	}
	if old != nil {
		ev.Type, ev.Before = backend.Modified, backend.BeforeOf(old)
		if len(a.Put.Change) > 0 {
			ev.Change = a.Put.Change
		}
		r.UID = old.UID
		r.CreatedAt = old.CreatedAt
		r.BindingVersion = old.BindingVersion
		if a.Put.Declared == "" {
			r.Declared, r.Refs = old.Declared, old.Refs
		}
		if !a.Put.Caller {
			r.SpecRevision = old.SpecRevision
		}
	}
	p.writes = append(p.writes, newWrite(old, r, ev))
	return r, rev
}

func (p *ledger) rebind(a *backend.Action, old *backend.Resource) *backend.Resource {
	r := *old
	r.Refs = a.Put.Refs
	r.Declared = a.Put.Declared
	r.BindingVersion = old.BindingVersion + 1
	p.writes = append(p.writes, Write{Before: old, After: &r})
	return &r
}

// Expire returns the write that removes an expired resource, and advances log by it.
func Expire(r *backend.Resource, log *LogState, now time.Time) Write {
	return newWrite(
		r, nil,
		backend.Event{
			Type:     backend.Deleted,
			Revision: log.Next(r.Key),
			Resource: r,
			Time:     now.UTC().Truncate(time.Millisecond),
		},
	)
}

// newWrite returns a write with the revision of e. e becomes its log entry unless the record is internal.
func newWrite(before, after *backend.Resource, e backend.Event) Write {
	w := Write{Before: before, After: after, Revision: e.Revision}
	if !e.Resource.Internal() {
		w.Event = e
	}
	return w
}
