package backend

import "time"

// Plan judges a batch against the state that lookup shows and works out its
// changes, for drivers that can hold a lock over both. lookup returns what is
// stored, expired or not, nil if nothing is. head is the revision of the last
// change of the shard; the changes get the revisions after it. Nothing is
// written. now must be in UTC.
func Plan(b Batch, now time.Time, head Revision, lookup func(Key) (*Resource, error)) (Result, []Event, error) {
	if now.After(b.Deadline) {
		return Result{}, nil, ErrDeadline
	}
	stored := make([]*Resource, len(b.Actions)) // expired or not
	for i, a := range b.Actions {
		r, err := lookup(a.Key)
		if err != nil {
			return Result{}, nil, err
		}
		stored[i] = r
		live := r
		if r != nil && r.ExpiredAt(now) {
			live = nil
		}
		err = a.If.Check(live)
		if err == nil && a.Do == DeedDelete && live == nil {
			err = ErrNotFound
		}
		if err != nil {
			return Result{}, nil, &ConditionError{Action: i, Key: a.Key, Current: live, Err: err}
		}
	}
	now = now.UTC().Truncate(time.Millisecond)
	res := Result{Resources: make([]*Resource, len(b.Actions)), Revisions: make([]Revision, len(b.Actions))}
	var events []Event
	next := func() Revision { head.Seq++; return head }
	for i, a := range b.Actions {
		old := stored[i]
		if old != nil && old.ExpiredAt(now) && a.Do == DeedPut {
			events = append(events, deletion(old, next(), b.RequestID, now))
			old = nil
		}
		switch a.Do {
		case DeedPut:
			ev := put(a, old, next(), b.RequestID, now)
			res.Resources[i], res.Revisions[i] = ev.Resource, ev.Revision
			events = append(events, ev)
		case DeedDelete:
			ev := deletion(old, next(), b.RequestID, now)
			res.Resources[i], res.Revisions[i] = old, ev.Revision
			events = append(events, ev)
		case DeedCheck:
			if old != nil && !old.ExpiredAt(now) {
				res.Resources[i] = old
			}
		}
	}
	return res, events, nil
}

// Expire returns the change that purges an expired resource.
func Expire(r *Resource, rev Revision, now time.Time) Event {
	return deletion(r, rev, "", now.UTC().Truncate(time.Millisecond))
}

func deletion(old *Resource, rev Revision, requestID string, now time.Time) Event {
	return Event{Type: Deleted, Revision: rev, Resource: old, RowsBefore: old.Rows, FingerprintBefore: old.Fingerprint, RequestID: requestID, Time: now}
}

func put(a Action, old *Resource, rev Revision, requestID string, now time.Time) Event {
	r := &Resource{
		Key: a.Key,
		Envelope: Envelope{
			UID: a.Put.UID, Revision: rev, SpecRevision: rev, Deleting: a.Put.Deleting,
			Fingerprint: a.Put.Fingerprint, CreatedAt: now, UpdatedAt: now,
		},
		Rows: a.Put.Rows,
		Body: a.Put.Body,
	}
	if !a.Put.ExpiresAt.IsZero() {
		r.ExpiresAt = a.Put.ExpiresAt.UTC().Truncate(time.Millisecond)
	}
	ev := Event{Type: Added, Revision: rev, Resource: r, RequestID: requestID, Time: now}
	if old != nil {
		ev.Type, ev.RowsBefore, ev.FingerprintBefore = Modified, old.Rows, old.Fingerprint
		r.UID, r.CreatedAt = old.UID, old.CreatedAt
		if !a.Put.Caller {
			r.SpecRevision = old.SpecRevision
		}
	}
	return ev
}
