package backend

import "time"

// EventType says what a change did.
type EventType uint8

// The changes.
const (
	Added EventType = iota + 1
	Modified
	Deleted
)

// String is the type's name in the API.
func (t EventType) String() string {
	if t < Added || t > Deleted {
		return "UNKNOWN"
	}
	return [...]string{Added: "ADDED", Modified: "MODIFIED", Deleted: "DELETED"}[t]
}

// Event is one log entry: one change of one key.
type Event struct {
	Type EventType
	// Revision of the change. Deletes have one of their own.
	Revision Revision
	// Resource after the change; for Deleted the last state, with the revision it had.
	Resource *Resource
	// Before is what the envelope had before the change; nil unless the type is Modified. The
	// last state of a Deleted is Resource.
	Before *Before
	// Change is [Put.Change] of the put that made the change; nil if that was empty.
	Change []byte
	// Actor is [Batch.Actor]; empty for a purge of what expired.
	Actor string
	// RequestID of the batch; empty for a purge of what expired.
	RequestID string
	// Time of the change by the store's clock.
	Time time.Time
	// Position has seen this change and all before it. Set by Watch.
	Position Position
}

// Before is what of an envelope a log entry keeps of the state that a change replaced.
type Before struct {
	Revision             Revision
	UpdatedAt, ExpiresAt time.Time
	Deleting             bool
	// Bound are the resources to which it had a bound reference, in the order of its references.
	Bound []Key
}

// BeforeOf returns what a log entry keeps of the envelope of r.
func BeforeOf(r *Resource) *Before {
	return &Before{
		Revision:  r.Revision,
		UpdatedAt: r.UpdatedAt,
		ExpiresAt: r.ExpiresAt,
		Deleting:  r.Deleting,
		Bound:     r.Bound(),
	}
}

// Size is the number of bytes the entry counts for in the log.
func (e *Event) Size() int {
	n := e.Resource.Size() + len(e.Change) + len(e.Actor) + 64
	if e.Before != nil {
		for _, key := range e.Before.Bound {
			n += len(key.Kind) + len(key.Namespace) + len(key.Name)
		}
	}
	return n
}
