package storekit

import (
	"errors"
	"fmt"
	"slices"

	"github.com/sluicegw/sluice/backend"
)

// Write is a change of one key. The driver replaces Before by After, including all index entries, and appends Event to
// the log.
type Write struct {
	// Before is the stored resource; nil if there is none.
	Before *backend.Resource
	// After is the resource to store; nil to delete the key.
	After *backend.Resource
	// Revision is the revision of the change; zero for a rebind.
	Revision backend.Revision
	// Event is the log entry. If its Type is zero, there is no entry: for a rebind, and for internal records.
	Event backend.Event
	// Damaged reports whether the stored record cannot be decoded. Then Before has only the key, and the driver must
	// search for the index entries.
	Damaged bool
}

// Logged reports whether the write has a log entry.
func (w *Write) Logged() bool { return w.Event.Type != 0 }

// Refs returns the inverse index entries that the write removes (ended), and the entries that it adds (begun).
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
	return without(ended, begun), without(begun, ended)
}

func without(a, b []backend.Ref) []backend.Ref {
	var out []backend.Ref
	for i, ref := range a {
		// The common case: nothing has changed, and both lists have the same order.
		if i < len(b) && ref == b[i] {
			continue
		}
		if !slices.Contains(b, ref) {
			out = append(out, ref)
		}
	}
	return out
}

// Unreadable adds the key to err, the error for a stored resource that cannot be decoded. The result always wraps
// ErrUnreadable.
func Unreadable(k backend.Key, err error) error {
	if errors.Is(err, backend.ErrUnreadable) {
		return fmt.Errorf("%s: %w", k, err)
	}
	return fmt.Errorf("%s: %w: %w", k, backend.ErrUnreadable, err)
}
