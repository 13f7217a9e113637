package backend

import "time"

// EventType is the type of a change.
type EventType uint8

// The types.
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
	// Revision of the change. A delete has a revision, too.
	Revision Revision
	// Resource is the resource after the change; for Deleted the last state, with its
	// own revision.
	Resource *Resource
	// Before has facts of the envelope before the change; nil unless the type is Modified.
	// For Deleted, see Resource.
	Before *Before
	// Change is [Put.Change] of the put that made the change; nil if that was empty.
	Change []byte
	// Actor is [Batch.Actor]; empty for the purge of an expired resource.
	Actor string
	// RequestID is that of the batch; empty for the purge of an expired resource.
	RequestID string
	// Time of the change by the store's clock.
	Time time.Time
	// Position is the position after this change. Watch sets it.
	Position Position
}

// Before is the part of the replaced state's envelope that a log entry keeps.
type Before struct {
	Revision             Revision
	UpdatedAt, ExpiresAt time.Time
	Deleting             bool
	// Bound are the resources to which it had bound references, in the order of its references.
	Bound []Key
}

// BeforeOf returns the part of r's envelope that a log entry keeps.
func BeforeOf(r *Resource) *Before {
	return &Before{
		Revision:  r.Revision,
		UpdatedAt: r.UpdatedAt,
		ExpiresAt: r.ExpiresAt,
		Deleting:  r.Deleting,
		Bound:     r.Bound(),
	}
}

// Size returns the number of bytes that the entry counts in the log.
func (e *Event) Size() int {
	n := e.Resource.Size() + len(e.Change) + len(e.Actor) + 64
	if e.Before != nil {
		for _, key := range e.Before.Bound {
			n += len(key.Kind) + len(key.Namespace) + len(key.Name)
		}
	}
	return n
}
