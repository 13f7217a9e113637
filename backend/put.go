package backend

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Put is the caller's part of a stored resource. The store keeps Rows, Refs and
// Body as they are: nobody changes them afterwards.
type Put struct {
	// UID of a new resource. An existing one keeps its own.
	UID      string
	Deleting bool
	// Finalizers is how many finalizers hold the resource, at most MaxFinalizers.
	// Nil leaves the count as it is: 0 of a new resource.
	Finalizers  *int
	Fingerprint string
	ExpiresAt   time.Time
	// Caller marks a change of spec or of metadata that a caller sets; it moves SpecRevision.
	Caller bool
	// Rows are the index rows. Names of indexes that begin with "_" are reserved.
	Rows []Row
	// Declared is the fingerprint of the declarations that Refs were taken by, at most
	// MaxFingerprint bytes. Empty leaves fingerprint and references as they are: a new
	// resource has none.
	Declared string
	// Refs are the resources referred to, each once; none if Declared is empty.
	Refs []Ref
	Body []byte
}

func (p Put) validate(a Action) error {
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
	if y := p.ExpiresAt.Year(); !p.ExpiresAt.IsZero() && (y < 1970 || y > 9999) {
		return fmt.Errorf("%s: expiry in a year from 1970 to 9999 wanted: %w", a.Key, ErrInvalid)
	}
	if err := p.validateRefs(a.Key); err != nil {
		return err
	}
	return p.validateIndex(a.Key)
}

// validateReindex wants index rows and their fingerprint, and nothing else.
func (p Put) validateReindex(a Action) error {
	if a.If.Revision.IsZero() {
		return fmt.Errorf("%s: a reindex without the revision it is of: %w", a.Key, ErrInvalid)
	}
	if p.changesResource() || p.Declared != "" || p.Refs != nil {
		return fmt.Errorf("%s: a reindex of more than rows and their fingerprint: %w", a.Key, ErrInvalid)
	}
	return p.validateIndex(a.Key)
}

// validateRebind wants references and their fingerprint, and nothing else.
func (p Put) validateRebind(a Action) error {
	if a.If.Revision.IsZero() || a.If.Passes == 0 {
		return fmt.Errorf("%s: a rebind without the revision and the passes it is of: %w", a.Key, ErrInvalid)
	}
	if p.changesResource() || p.Fingerprint != "" || p.Rows != nil {
		return fmt.Errorf("%s: a rebind of more than references and their fingerprint: %w", a.Key, ErrInvalid)
	}
	return p.validateRefs(a.Key)
}

// changesResource reports whether p has what an OpPut alone changes.
func (p Put) changesResource() bool {
	return p.UID != "" || p.Deleting || p.Finalizers != nil || p.Caller || !p.ExpiresAt.IsZero() || p.Body != nil
}

func (p Put) validateIndex(key Key) error {
	if len(p.Fingerprint) > MaxFingerprint || len(p.Rows) > MaxRows {
		return fmt.Errorf("%s: a fingerprint of at most %d bytes and at most %d rows wanted: %w", key, MaxFingerprint, MaxRows, ErrInvalid)
	}
	for i, row := range p.Rows {
		if row.Index == "" || len(row.Value) == 0 || len(row.Index)+len(row.Value) > MaxRowBytes {
			return fmt.Errorf("%s: row %d: an index and a value of at most %d bytes in all wanted: %w", key, i, MaxRowBytes, ErrInvalid)
		}
		if strings.HasPrefix(row.Index, internalPrefix) {
			return fmt.Errorf("%s: row %d: index %q is reserved: %w", key, i, row.Index, ErrInvalid)
		}
		if !isTuple(row.Value) {
			return fmt.Errorf("%s: row %d: the value is not made of tuple elements: %w", key, i, ErrInvalid)
		}
		if slices.ContainsFunc(p.Rows[:i], row.Equal) {
			return fmt.Errorf("%s: row %d twice: %w", key, i, ErrInvalid)
		}
	}
	return nil
}

func (p Put) validateRefs(key Key) error {
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
		case ref.Key.Namespace != key.Namespace:
			return fmt.Errorf("%s: reference %d: to namespace %q: %w", key, i, ref.Key.Namespace, ErrInvalid)
		case seen[ref.Key]:
			return fmt.Errorf("%s: reference %d: %s twice: %w", key, i, ref.Key, ErrInvalid)
		}
		seen[ref.Key] = true
	}
	return nil
}
