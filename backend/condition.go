package backend

// Presence is what a condition demands of a key.
type Presence uint8

// The demands.
const (
	Any Presence = iota
	Absent
	Present
)

// Condition must hold for the batch to be applied: all that is set, judged in
// the order of the fields, but BindingVersion with Revision. An expired resource counts as absent.
type Condition struct {
	Presence Presence
	// All others imply presence where set.
	UID         string
	Revision    Revision
	NotDeleting bool
	Deleting    bool
	// Unreferenced: no live resource holds a bound reference to the key. What the
	// resource itself refers to does not count.
	Unreferenced bool
	// Unfinalized: no finalizer holds the resource. It comes after Unreferenced, so
	// that ErrFinalized says that finalizers are all that is left.
	Unfinalized bool
	// BindingVersion is the [Envelope.BindingVersion] of the resource: a put that was prepared before its
	// references were replaced must not undo that. 0 asks for none.
	BindingVersion uint32
}

// Check judges the condition against the live resource, nil if there is none.
// bound reports whether another holds a bound reference to it; it is asked only if need be.
func (c Condition) Check(current *Resource, bound func() (bool, error)) error {
	if c.Presence == Absent {
		if current != nil {
			return ErrExists
		}
		return nil
	}
	if current == nil {
		if c == (Condition{}) {
			return nil
		}
		return ErrNotFound
	}
	switch {
	case c.UID != "" && c.UID != current.UID:
		return ErrConflict
	case !c.Revision.IsZero() && c.Revision != current.Revision:
		return ErrConflict
	case c.BindingVersion != 0 && c.BindingVersion != current.BindingVersion:
		return ErrConflict
	case c.NotDeleting && current.Deleting:
		return ErrDeleting
	case c.Deleting && !current.Deleting:
		return ErrNotDeleting
	}
	if c.Unreferenced {
		if held, err := bound(); err != nil {
			return err
		} else if held {
			return ErrReferenced
		}
	}
	if c.Unfinalized && current.Finalizers > 0 {
		return ErrFinalized
	}
	return nil
}
