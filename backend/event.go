package backend

import "time"

// EventType is the type of the change that an [Event] describes.
type EventType uint8

// A put that creates a resource is Added, and a put that replaces one is Modified. A delete, and the purge of an
// expired resource, is Deleted.
const (
	Added EventType = iota + 1
	Modified
	Deleted
)

// String returns the type's name in the API, such as "ADDED".
func (t EventType) String() string {
	if t < Added || t > Deleted {
		return "UNKNOWN"
	}
	return [...]string{Added: "ADDED", Modified: "MODIFIED", Deleted: "DELETED"}[t]
}

// Event is one log entry: one change of one key.
type Event struct {
	Type EventType
	// Revision is the revision of the change. A delete has one, too.
	Revision Revision
	// Resource is the resource after the change. For a Deleted event it is the last state, with the revision that it
	// had.
	Resource *Resource
	// Before has a part of the envelope from before the change. It is nil unless the type is Modified.
	Before *Before
	// Change is the [Put.Change] of the put; nil if that is empty.
	Change []byte
	// Actor is the [Batch.Actor]; empty for the purge of an expired resource.
	Actor string
	// RequestID is the [Batch.RequestID]; empty for the purge of an expired resource.
	RequestID string
	// Time is the time of the change by the store's clock.
	Time time.Time
	// Position is the position after this change. Only Watch sets it.
	Position Position
}

// Before has the facts that a log entry keeps about a resource before a modification.
type Before struct {
	Revision             Revision
	UpdatedAt, ExpiresAt time.Time
	Deleting             bool
	// Bound are the targets of the resource's bound references, in the order of the references.
	Bound []Key
}

// BeforeOf returns the facts that a log entry keeps about r when a put replaces r.
func BeforeOf(r *Resource) *Before {
	return &Before{
		Revision:  r.Revision,
		UpdatedAt: r.UpdatedAt,
		ExpiresAt: r.ExpiresAt,
		Deleting:  r.Deleting,
		Bound:     r.Bound(),
	}
}

// Size returns the number of bytes that count against the limits of the log and of a delivery.
func (e *Event) Size() int {
	n := e.Resource.Size() + len(e.Change) + len(e.Actor) + 64
	if e.Before != nil {
		for _, key := range e.Before.Bound {
			n += len(key.Kind) + len(key.Namespace) + len(key.Name)
		}
	}
	return n
}
