package backend

import (
	"fmt"
	"time"
)

// Put is the part of a stored resource that the caller provides. The store keeps Refs, Body and Change without copying
// them, so they must not be changed afterwards.
type Put struct {
	// UID is the uid of a new resource. An existing resource keeps its uid.
	UID      string
	Deleting bool
	// Finalizers is the number of finalizers that hold the resource, at most
	// MaxFinalizers. Nil keeps the number, which is 0 for a new resource.
	Finalizers *int
	ExpiresAt  time.Time
	// Caller marks a change of the spec, or of metadata that callers set. The store then sets [Envelope.SpecRevision]
	// to the revision of the put.
	Caller bool
	// Declared is the fingerprint of the declarations from which Refs were derived, at most MaxFingerprint bytes. If it
	// is empty, the resource keeps its fingerprint and references; a new resource then has none.
	Declared string
	// Refs are the references, without duplicates. If Declared is empty, there must be none.
	Refs []Ref
	Body []byte
	// Change describes the state that the put replaces. The log entry has it as [Event.Change]. It has at most
	// MaxChange bytes, which the store does not interpret. It may be empty. The condition of a put with a Change must
	// name the revision of that state.
	Change []byte
	// CreatedAt and UpdatedAt are the times of a resource that comes from another store, in milliseconds. Either both
	// are set, and the condition is [Absent], or both are zero: then the store uses the present time.
	CreatedAt, UpdatedAt time.Time
}

func (p Put) validate(a Action, shards Sharder) error {
	if len(p.UID) == 0 || len(p.UID) > MaxRequestID {
		return fmt.Errorf("%s: uid of 1 to %d bytes wanted: %w", a.Key, MaxRequestID, ErrInvalid)
	}
	if len(p.Body) == 0 {
		return fmt.Errorf("%s: no body: %w", a.Key, ErrInvalid)
	}
	if size := a.size(); size > MaxStoredBytes {
		return fmt.Errorf("%s: %d bytes, at most %d: %w", a.Key, size, MaxStoredBytes, ErrTooLarge)
	}
	if n := p.Finalizers; n != nil && (*n < 0 || *n > MaxFinalizers) {
		return fmt.Errorf("%s: %d finalizers, 0 to %d wanted: %w", a.Key, *n, MaxFinalizers, ErrInvalid)
	}
	if y := p.ExpiresAt.UTC().Year(); !p.ExpiresAt.IsZero() && (y < 1970 || y > 9999) {
		return fmt.Errorf("%s: expiry in a year from 1970 to 9999 wanted: %w", a.Key, ErrInvalid)
	}
	if len(p.Change) > MaxChange {
		return fmt.Errorf("%s: a change of %d bytes, at most %d: %w", a.Key, len(p.Change), MaxChange, ErrInvalid)
	}
	if len(p.Change) > 0 && a.If.Revision.IsZero() {
		return fmt.Errorf("%s: a change without the revision it is from: %w", a.Key, ErrInvalid)
	}
	if err := p.validateTimes(a); err != nil {
		return err
	}
	return p.validateRefs(a.Key, shards)
}

// validateTimes checks that the times are both zero or both set, and that they are set only if the condition requires
// the key to be absent.
func (p Put) validateTimes(a Action) error {
	if p.CreatedAt.IsZero() && p.UpdatedAt.IsZero() {
		return nil
	}
	if a.If.Presence != Absent {
		return fmt.Errorf("%s: times of a resource whose key need not be absent: %w", a.Key, ErrInvalid)
	}
	for _, at := range []time.Time{p.CreatedAt, p.UpdatedAt} {
		if y := at.UTC().Year(); at.IsZero() || y < 1970 || y > 9999 {
			return fmt.Errorf("%s: both times in years from 1970 to 9999 wanted: %w", a.Key, ErrInvalid)
		}
	}
	return nil
}

// validateRebind checks that the condition of a rebind names the revision and the binding version, and that p has
// nothing but valid references and their fingerprint.
func (p Put) validateRebind(a Action, shards Sharder) error {
	if a.If.Revision.IsZero() || a.If.BindingVersion == 0 {
		return fmt.Errorf("%s: a rebind without the revision and the binding version it is of: %w", a.Key, ErrInvalid)
	}
	if p.changesResource() {
		return fmt.Errorf("%s: a rebind of more than references and their fingerprint: %w", a.Key, ErrInvalid)
	}
	return p.validateRefs(a.Key, shards)
}

// changesResource reports whether p has fields that only an OpPut may set.
func (p Put) changesResource() bool {
	return p.UID != "" || p.Deleting || p.Finalizers != nil || p.Caller || !p.ExpiresAt.IsZero() || p.Body != nil ||
		len(p.Change) > 0 || !p.CreatedAt.IsZero() || !p.UpdatedAt.IsZero()
}

func (p Put) validateRefs(key Key, shards Sharder) error {
	if len(p.Declared) > MaxFingerprint || p.Declared == "" && len(p.Refs) > 0 {
		return fmt.Errorf("%s: references wanted with a fingerprint of their declarations, of 1 to %d bytes: %w", key, MaxFingerprint, ErrInvalid)
	}
	if len(p.Refs) > MaxRefs {
		return fmt.Errorf("%s: %d references, at most %d: %w", key, len(p.Refs), MaxRefs, ErrInvalid)
	}
	seen := make(map[Key]bool, len(p.Refs))
	for i, ref := range p.Refs {
		switch {
		case !ref.Key.valid():
			return fmt.Errorf("%s: reference %d: %w", key, i, errKey())
		case ref.Key.Namespace != "" && ref.Key.Namespace != key.Namespace:
			return fmt.Errorf("%s: reference %d: to namespace %q: %w", key, i, ref.Key.Namespace, ErrInvalid)
		case ref.Bound && !sameShard(shards, ref.Key.Namespace, key.Namespace):
			return fmt.Errorf("%s: reference %d: bound to %s, which lies in another shard: %w", key, i, ref.Key, ErrInvalid)
		case seen[ref.Key]:
			return fmt.Errorf("%s: reference %d: %s twice: %w", key, i, ref.Key, ErrInvalid)
		}
		seen[ref.Key] = true
	}
	return nil
}
