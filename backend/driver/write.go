package driver

import (
	"bytes"
	"slices"

	"github.com/sluicegw/sluice/backend"
)

// Write is what a driver does to one key: it stores After in the place of
// Before, with all that makes it findable, and appends Event to the log.
type Write struct {
	// Before is what is stored under the key, nil if nothing is.
	Before *backend.Resource
	// After is what is stored then, nil if nothing is.
	After *backend.Resource
	// Revision of the write, zero for a reindex and a rebind.
	Revision backend.Revision
	// Event is the log entry. Its Type is zero where there is none: for a reindex, a
	// rebind and a write of an internal record.
	Event backend.Event
	// Damaged says that what is stored does not decode: Before has no more than
	// the key, and the driver looks for what makes it findable.
	Damaged bool
}

// Logged says whether the write has a log entry.
func (w *Write) Logged() bool { return w.Event.Type != 0 }

// Rows returns the index rows that end and those that begin with the write,
// reserved ones included. Rows that stay are in neither.
func (w *Write) Rows() (ended, begun []backend.Row) {
	if b, a := w.Before, w.After; b != nil && a != nil && b.Fingerprint == a.Fingerprint && b.Deleting == a.Deleting && w.rowsStay() {
		return nil, nil
	}
	if w.Before != nil {
		ended = w.Before.IndexRows()
	}
	if w.After != nil {
		begun = w.After.IndexRows()
	}
	return without(ended, begun, backend.Row.Equal), without(begun, ended, backend.Row.Equal)
}

// rowsStay says whether the rows after the write, which is no deletion, are those before.
func (w *Write) rowsStay() bool {
	if w.Event.Type == backend.Modified {
		return !w.Event.RowsChanged() // mostly they are the same list by now
	}
	return slices.EqualFunc(w.Before.Rows, w.After.Rows, backend.Row.Equal)
}

// OwnRows copies the rows before the change that the event keeps, whose values share
// memory with what was stored.
func (w *Write) OwnRows() {
	if w.Before == nil || !w.Logged() || !w.Event.RowsChanged() {
		return // there are none, or they are those of After
	}
	w.Event.RowsBefore = slices.Clone(w.Event.RowsBefore)
	for i := range w.Event.RowsBefore {
		row := &w.Event.RowsBefore[i]
		row.Value = bytes.Clone(row.Value)
	}
}

// Refs returns the entries of the inverse index that end and those that begin
// with the write.
func (w *Write) Refs() (ended, begun []backend.Ref) {
	if w.Before != nil && w.After != nil && slices.Equal(w.Before.Refs, w.After.Refs) {
		return nil, nil
	}
	if w.Before != nil {
		ended = w.Before.RefEntries()
	}
	if w.After != nil {
		begun = w.After.RefEntries()
	}
	equal := func(a, b backend.Ref) bool { return a == b }
	return without(ended, begun, equal), without(begun, ended, equal)
}

// without returns what of a is not in b.
func without[T any](a, b []T, equal func(T, T) bool) []T {
	var out []T
	for i, x := range a {
		// Mostly nothing has changed, and lists are made in one order.
		if i < len(b) && equal(x, b[i]) {
			continue
		}
		if !slices.ContainsFunc(b, func(y T) bool { return equal(x, y) }) {
			out = append(out, x)
		}
	}
	return out
}
