package backend

// Presence is what a condition requires of the existence of a key.
type Presence uint8

// The requirements.
const (
	Any Presence = iota
	Absent
	Present
)

// Condition must hold for the batch to be applied. All fields that are set are checked, in their
// order; BindingVersion is checked together with Revision. An expired resource counts as absent.
type Condition struct {
	Presence Presence
	// The following fields, if set, require the key to be present.
	UID         string
	Revision    Revision
	NotDeleting bool
	Deleting    bool
	// Unreferenced requires that no live resource holds a bound reference to the key. A
	// reference of the resource to itself does not count.
	Unreferenced bool
	// Unfinalized requires that no finalizer holds the resource. It is checked after
	// Unreferenced, so ErrFinalized means that only finalizers are left.
	Unfinalized bool
	// BindingVersion is the required [Envelope.BindingVersion], so that a put which was prepared
	// before a rebind does not undo it. 0 requires none.
	BindingVersion uint32
}

// Check checks the condition against the live resource, nil if there is none. bound reports
// whether another resource holds a bound reference to it; it is called only if needed.
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
