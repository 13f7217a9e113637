package backend

import (
	"errors"
	"fmt"
)

// Errors of a batch with a condition that does not hold. The batch changed nothing. Each error is wrapped in a
// [*ConditionError], which has the key and the current state.
var (
	// ErrNotFound: the condition requires the key to be present, but it is absent or expired.
	ErrNotFound = errors.New("not found")
	// ErrExists: the condition requires the key to be absent, but it is present.
	ErrExists = errors.New("already exists")
	// ErrConflict: the resource has another revision or uid than the condition.
	ErrConflict = errors.New("revision conflict")
	// ErrDeleting: the condition requires a resource that is not being deleted.
	ErrDeleting = errors.New("being deleted")
	// ErrNotDeleting: the condition requires a resource that is being deleted.
	ErrNotDeleting = errors.New("not being deleted")
	// ErrReferenced: the condition requires a resource to which no other one has a bound reference.
	ErrReferenced = errors.New("still referenced")
	// ErrFinalized: the condition requires a resource without finalizers.
	ErrFinalized = errors.New("held by finalizers")
)

// Errors of the request itself. Sending it again cannot help.
var (
	// ErrInvalid: the batch, range or key is malformed.
	ErrInvalid = errors.New("invalid request")
	// ErrTooLarge: the resource or batch exceeds its size limit.
	ErrTooLarge = errors.New("too large")
)

// Errors about the outcome of a batch.
var (
	// ErrDeadline: the deadline of the batch has passed by the store's clock. Nothing was applied, and nothing will be.
	ErrDeadline = errors.New("batch deadline passed")
	// ErrUnknown: the batch may or may not have been applied; the log shows which. Together with ErrFormat it means
	// that a part of the batch was applied, and that the log may have changes that are not stored.
	ErrUnknown = errors.New("outcome unknown")
)

// ErrEncrypted: a stored value cannot be decrypted, because its encryption key is
// missing or the record was changed.
var ErrEncrypted = errors.New("encrypted")

// Errors that end a watch.
var (
	// ErrPositionExpired: the log cannot continue from the position without a gap,
	// because entries were trimmed, were lost, belong to another log, or do not decode.
	ErrPositionExpired = errors.New("position expired")
	// ErrLagged: the watcher was too slow. It comes wrapped in a [*LaggedError].
	ErrLagged = errors.New("watcher lagged behind")
)

// Errors of the store as a whole.
var (
	// ErrUnavailable: the store cannot answer now and nothing was applied; try again later.
	ErrUnavailable = errors.New("store unavailable")
	// ErrDamaged: the store is damaged as a whole and must be restored from a backup. Each call that meets the damage
	// returns this error.
	ErrDamaged = errors.New("the store is damaged")
	// ErrNoSpace: the store has no space for the change, and nothing was applied. It is
	// returned together with ErrUnavailable.
	ErrNoSpace = errors.New("no space left")
	// ErrReadOnly: the store was opened for reading only; nothing was applied.
	ErrReadOnly = errors.New("read-only")
	// ErrClosed: the store or the watcher was closed by its owner.
	ErrClosed = errors.New("closed")
	// ErrFormat: the data belongs to another program or a newer release, or the server is not
	// suitable.
	ErrFormat = errors.New("store format")
	// ErrUnreadable: stored bytes do not decode.
	ErrUnreadable = errors.New("unreadable")
)

// FormatErrorf returns an [ErrFormat] whose message is the formatted text. It also wraps the
// operands of %w.
func FormatErrorf(format string, args ...any) error { return formatError{fmt.Errorf(format, args...)} }

// formatError is an ErrFormat with its own message.
type formatError struct{ error }

// Unwrap returns the error with the message, and ErrFormat.
func (e formatError) Unwrap() []error { return []error{e.error, ErrFormat} }

// ExpiredError lists the shards on which a watch cannot continue. A store with one shard may return ErrPositionExpired
// itself.
type ExpiredError struct {
	Shards []int
	// Shared is parallel to Shards. Each element is the last revision that both the log and the history of the watch
	// have; zero if there is none. A new watch can begin there, for example after a fail-over that lost writes. A nil
	// Shared means that none is known.
	Shared []Revision
}

// Lose adds a shard on which the watch cannot continue. shared becomes the shard's element of Shared.
func (e *ExpiredError) Lose(shard int, shared Revision) {
	e.Shards, e.Shared = append(e.Shards, shard), append(e.Shared, shared)
}

func (e *ExpiredError) Error() string {
	return fmt.Sprintf("%v on shards %v", ErrPositionExpired, e.Shards)
}

// Is reports whether target is ErrPositionExpired.
func (e *ExpiredError) Is(target error) bool { return target == ErrPositionExpired }

// ConditionError reports which action of a batch failed its condition, and why.
type ConditionError struct {
	// Action is the index into [Batch.Actions].
	Action int
	Key    Key
	// Current is the live resource under Key, nil if there is none. It must not be
	// changed.
	Current *Resource
	// Err is ErrNotFound, ErrExists, or another error of a condition.
	Err error
}

func (e *ConditionError) Error() string { return fmt.Sprintf("%s: %v", e.Key, e.Err) }

// Unwrap returns Err.
func (e *ConditionError) Unwrap() error { return e.Err }

// LaggedError ends a watch whose watcher was too slow. A new watch can resume at Position.
type LaggedError struct{ Position Position }

func (e *LaggedError) Error() string { return ErrLagged.Error() }

// Is reports whether target is ErrLagged.
func (e *LaggedError) Is(target error) bool { return target == ErrLagged }
