package backend

import (
	"slices"
	"time"
)

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
	switch t {
	case Added:
		return "ADDED"
	case Modified:
		return "MODIFIED"
	case Deleted:
		return "DELETED"
	}
	return "UNKNOWN"
}

// Event is one log entry: one change of one key.
type Event struct {
	Type EventType
	// Revision of the change. Deletes have one of their own.
	Revision Revision
	// Resource after the change; for Deleted the last state, with the revision it had.
	Resource *Resource
	// RowsBefore and FingerprintBefore are those the change replaced; empty for Added.
	RowsBefore        []Row
	FingerprintBefore string
	// RequestID of the batch; empty for a purge of what expired.
	RequestID string
	// Time of the change by the store's clock.
	Time time.Time
	// Position has seen this change and all before it. Set by Watch.
	Position Position
}

// RowsAfter are the index rows that the change left: none for Deleted.
func (e *Event) RowsAfter() []Row {
	if e.Type == Deleted {
		return nil
	}
	return e.Resource.Rows
}

// RowsChanged says whether the change moved the resource in any index.
func (e *Event) RowsChanged() bool {
	before, after := e.RowsBefore, e.RowsAfter()
	if len(before) == len(after) && (len(before) == 0 || &before[0] == &after[0]) {
		return false // the same list, as drivers leave it where nothing has changed
	}
	return !slices.EqualFunc(before, after, Row.Equal)
}

// Size is the number of bytes the entry counts for in the log.
func (e *Event) Size() int {
	n := e.Resource.Size() + 64
	if e.Type == Modified {
		for _, row := range e.RowsBefore {
			n += len(row.Index) + len(row.Value)
		}
	}
	return n
}
