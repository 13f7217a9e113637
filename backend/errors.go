package backend

import (
	"errors"
	"fmt"
)

// A condition of a batch did not hold. The batch changed nothing. Each comes
// wrapped in a [*ConditionError] that names the key and the current state.
var (
	// ErrNotFound: the condition wants the key present and it is absent or expired.
	ErrNotFound = errors.New("not found")
	// ErrExists: the condition wants the key absent and it is live.
	ErrExists = errors.New("already exists")
	// ErrConflict: the revision or uid is not the one the condition names.
	ErrConflict = errors.New("revision conflict")
	// ErrDeleting: the condition wants a resource that is not being deleted.
	ErrDeleting = errors.New("being deleted")
	// ErrNotDeleting: the condition wants a resource that is being deleted.
	ErrNotDeleting = errors.New("not being deleted")
	// ErrReferenced: the condition wants a resource to which no other is bound.
	ErrReferenced = errors.New("still referenced")
	// ErrFinalized: the condition wants a resource that no finalizer holds.
	ErrFinalized = errors.New("held by finalizers")
)

// The request itself is at fault; sending it again cannot help.
var (
	// ErrInvalid: a malformed batch, range or key.
	ErrInvalid = errors.New("invalid request")
	// ErrTooLarge: a resource or a batch is over its size limit.
	ErrTooLarge = errors.New("too large")
)

// The outcome of a batch.
var (
	// ErrDeadline: the store's clock was past the batch's deadline. Nothing was applied, and never will be.
	ErrDeadline = errors.New("batch deadline passed")
	// ErrUnknown: the batch may or may not have been applied; the log will say. With ErrFormat it was applied in
	// part, and the log may have what is not stored.
	ErrUnknown = errors.New("outcome unknown")
)

// ErrEncrypted: a value is stored encrypted and cannot be decrypted here: its key is
// not there, or the record was changed.
var ErrEncrypted = errors.New("encrypted")

// A watch cannot go on.
var (
	// ErrPositionExpired: the changes after the position cannot be given without a
	// gap: trimmed, from a lost future, from another log, or undecodable.
	ErrPositionExpired = errors.New("position expired")
	// ErrLagged: the watcher was too slow. It comes wrapped in a [*LaggedError].
	ErrLagged = errors.New("watcher lagged behind")
)

// The store as a whole.
var (
	// ErrUnavailable: the store cannot answer now and nothing was applied; try again later.
	ErrUnavailable = errors.New("store unavailable")
	// ErrDamaged: what is stored cannot be read as a whole; only a copy helps. It is told by each call that meets the
	// damage.
	ErrDamaged = errors.New("the store is damaged")
	// ErrNoSpace: the store has no space left for the change, and nothing was
	// applied. It comes with ErrUnavailable.
	ErrNoSpace = errors.New("no space left")
	// ErrReadOnly: the store was opened to be read alone; nothing was applied.
	ErrReadOnly = errors.New("read-only")
	// ErrClosed: the store or the watcher was closed by its owner.
	ErrClosed = errors.New("closed")
	// ErrFormat: the data is not ours, or was written by a newer release, or its server is not fit to keep it.
	ErrFormat = errors.New("store format")
	// ErrUnreadable: stored bytes do not decode.
	ErrUnreadable = errors.New("unreadable")
)

// FormatErrorf returns an [ErrFormat] whose text is the formatted one alone. It wraps what %w formats, too.
func FormatErrorf(format string, args ...any) error { return formatError{fmt.Errorf(format, args...)} }

// formatError is an ErrFormat with a text.
type formatError struct{ error }

// Unwrap returns the error that the text is of, and the sentinel.
func (e formatError) Unwrap() []error { return []error{e.error, ErrFormat} }

// ExpiredError says on which shards a watch lost its place. A store with one
// shard may return the bare ErrPositionExpired.
type ExpiredError struct {
	Shards []int
	// Shared are parallel to Shards: the last revision that the log has in common with the
	// lost place, from which a watch can begin, as after a fail-over that lost writes. It is
	// zero where the log knows none. Nil: it knows none at all.
	Shared []Revision
}

// Lose adds a shard that lost its place.
func (e *ExpiredError) Lose(shard int, shared Revision) {
	e.Shards, e.Shared = append(e.Shards, shard), append(e.Shared, shared)
}

func (e *ExpiredError) Error() string {
	return fmt.Sprintf("%v on shards %v", ErrPositionExpired, e.Shards)
}

// Is makes errors.Is(err, ErrPositionExpired) hold.
func (e *ExpiredError) Is(target error) bool { return target == ErrPositionExpired }

// ConditionError says which action of a batch failed its condition, and why.
type ConditionError struct {
	// Action is the index into [Batch.Actions].
	Action int
	Key    Key
	// Current is the live resource under Key, nil if there is none. Read only.
	Current *Resource
	// Err is one of the condition sentinels.
	Err error
}

func (e *ConditionError) Error() string { return fmt.Sprintf("%s: %v", e.Key, e.Err) }

// Unwrap returns the condition sentinel.
func (e *ConditionError) Unwrap() error { return e.Err }

// LaggedError carries the position from which a watcher that was too slow can resume.
type LaggedError struct{ Position Position }

func (e *LaggedError) Error() string { return ErrLagged.Error() }

// Is makes errors.Is(err, ErrLagged) hold.
func (e *LaggedError) Is(target error) bool { return target == ErrLagged }
