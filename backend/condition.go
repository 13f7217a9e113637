package backend

// Presence states whether a condition requires its key to be present or absent.
type Presence uint8

// Absent requires that there is no live resource under the key. Present requires that there is one. Any requires
// neither.
const (
	Any Presence = iota
	Absent
	Present
)

// Condition must hold for a batch to be applied. The fields that are set are checked in the order in which they are
// declared, except that BindingVersion is checked directly after Revision. An expired resource counts as absent.
type Condition struct {
	Presence Presence
	// The following fields, if set, require the key to be present.
	UID         string
	Revision    Revision
	NotDeleting bool
	Deleting    bool
	// Unreferenced requires that no other live resource has a bound reference to the key.
	Unreferenced bool
	// Unfinalized requires that no finalizer holds the resource. It is checked after
	// Unreferenced, so ErrFinalized means that only finalizers are left.
	Unfinalized bool
	// BindingVersion is the required [Envelope.BindingVersion]. With it, a put that was prepared before a rebind does
	// not undo the rebind. 0 requires none.
	BindingVersion uint32
}

// Check checks the condition against current, the live resource under the key, which is nil if there is none. It
// returns nil, an error of a condition such as ErrConflict, or the error of bound. bound reports whether another
// resource has a bound reference to the key. It is called only if Unreferenced is set and the fields before it hold.
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
