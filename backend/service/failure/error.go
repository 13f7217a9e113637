// Package failure defines the errors that callers see, with their codes, and converts errors of stores into them.
package failure

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/hub"
)

// Code is the machine-readable code of an error: extensions.code in the API.
type Code string

// The codes of errors.
const (
	CodeNotFound         Code = "NOT_FOUND"
	CodeAlreadyExists    Code = "ALREADY_EXISTS"
	CodeConflict         Code = "CONFLICT"
	CodeAborted          Code = "ABORTED"
	CodeBeingDeleted     Code = "BEING_DELETED"
	CodeValidationFailed Code = "VALIDATION_FAILED"
	CodeBadUserInput     Code = "BAD_USER_INPUT"
	CodePositionExpired  Code = "POSITION_EXPIRED"
	CodeLagged           Code = "LAGGED"
	CodeCatalogueChanged Code = "CATALOGUE_CHANGED"
	CodeCursorInvalid    Code = "CURSOR_INVALID"
	// CodeUnsupportedVersion means that a version of the API is not served.
	CodeUnsupportedVersion Code = "UNSUPPORTED_VERSION"
	CodeUnreadable         Code = "UNREADABLE"
	CodeForbidden          Code = "FORBIDDEN"
	CodeUnauthenticated    Code = "UNAUTHENTICATED"
	CodeLimitExceeded      Code = "LIMIT_EXCEEDED"
	CodeUnavailable        Code = "UNAVAILABLE"
	CodeTimeout            Code = "TIMEOUT"
	CodeInternal           Code = "INTERNAL"

	// Errors of the document of a request.
	CodeParseFailed            Code = "GRAPHQL_PARSE_FAILED"
	CodeDocumentInvalid        Code = "GRAPHQL_VALIDATION_FAILED"
	CodePersistedQueryNotFound Code = "PERSISTED_QUERY_NOT_FOUND"
)

// OutcomeUnknown is the value of [Error.Outcome] for a write that may or may not have been applied.
const OutcomeUnknown = "UNKNOWN"

// OutcomeApplied is the value of [Error.Outcome] for a write that was applied, but whose answer could not be produced.
const OutcomeApplied = "APPLIED"

// Error is an error for a caller. Its message is safe to show; its cause is not.
type Error struct {
	Code    Code
	Message string
	// Kind, Namespace and Name identify the resource that the error is about; empty if unknown.
	Kind, Namespace, Name string
	// Verb is the verb that the caller lacks; empty if the error is not about rights.
	Verb string
	// Path is the path of the wrong value, within the resource or within the arguments of the request, such as
	// "spec.resource.mtu". [Steps] splits it.
	Path string
	// Rule is the rule that the value breaks, such as "max".
	Rule string
	// Limit is the limit of the rule, a number or a string; nil if the rule has none.
	Limit any
	// Setting is the name of the gateway's setting that defines the limit or requirement; empty if there is none.
	Setting                           string
	ExpectedRevision, CurrentRevision string
	// Retryable reports that nothing was applied, and that the same request may succeed later.
	Retryable bool
	// RetryAfter is the number of seconds after which a repeated request probably succeeds; 0 if unknown.
	RetryAfter int
	// Outcome is [OutcomeUnknown] or [OutcomeApplied] for a write that may have been applied or was applied. Otherwise
	// it is empty.
	Outcome string
	// Cursor resumes a stream that was too slow (LAGGED) or whose catalogue was replaced. It is empty for other errors.
	Cursor string
	// Violations are all violations of a VALIDATION_FAILED error.
	Violations []Violation

	cause error
}

// Violation is a value that breaks a rule.
type Violation struct {
	Path, Rule string
	// Limit is the limit of the rule, a number or a string; nil if the rule has none.
	Limit   any
	Message string
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Unauthenticated returns the error for a caller without a valid credential. Its message is the text of the cause.
func Unauthenticated(cause error) *Error {
	return &Error{Code: CodeUnauthenticated, Message: cause.Error(), cause: cause}
}

// Unaudited returns the error for values that are not revealed because the audit log cannot be written.
func Unaudited(cause error) *Error {
	return &Error{Code: CodeUnavailable, Retryable: true, Setting: "audit", Message: "the audit log cannot be written, and nothing is revealed without it; try again", cause: cause}
}

// Unwrap returns the cause. It is meant for the log and must not be shown to clients.
func (e *Error) Unwrap() error { return e.cause }

// Split returns one error for each violation, or only the error itself if it has no violations.
func (e *Error) Split() []*Error {
	if len(e.Violations) == 0 {
		return []*Error{e}
	}
	out := make([]*Error, len(e.Violations))
	for i, v := range e.Violations {
		one := *e
		one.Violations = nil
		one.Path = v.Path
		one.Rule = v.Rule
		one.Limit = v.Limit
		one.Message = v.Path + ": " + v.Message
		out[i] = &one
	}
	return out
}

// The maximum lengths of valid names of resources and namespaces. Longer ones are shortened in errors.
const (
	maxName      = 253
	maxNamespace = 63
)

// At sets the resource that the error is about, and returns the error.
func (e *Error) At(key backend.Key) *Error {
	e.Kind = key.Kind
	e.Namespace = key.Namespace
	e.Name = key.Name
	if len(e.Name) > maxName { // too long to be a valid name
		e.Name = Shorten(e.Name)
	}
	if len(e.Namespace) > maxNamespace {
		e.Namespace = Shorten(e.Namespace)
	}
	return e
}

// translation maps an error to the code and the message that callers see. The error is compared with the field is by
// [errors.Is]. If the text begins with %s, the message begins with the resource.
type translation struct {
	is        error
	code      Code
	retryable bool
	outcome   string
	text      string
}

// translations maps errors of stores and contexts to codes and messages. The first row that matches counts. An error
// that no row matches is INTERNAL.
func translations() []translation {
	return []translation{
		{is: backend.ErrUnknown, code: CodeUnavailable, outcome: OutcomeUnknown, text: "the store's answer to the change was lost; it may or may not have been made: read before you send it again"},
		{is: backend.ErrNotFound, code: CodeNotFound, text: "%s does not exist"},
		{is: backend.ErrExists, code: CodeAlreadyExists, text: "%s already exists"},
		{
			is:        backend.ErrConflict,
			code:      CodeAborted,
			retryable: true,
			text:      "%s was changed by others all the time; try again",
		},
		{is: backend.ErrDeleting, code: CodeBeingDeleted, text: "%s is being deleted, which cannot be cancelled"},
		{is: backend.ErrTooLarge, code: CodeLimitExceeded, text: "%s is larger than a resource may be (1 MiB)"},
		{is: backend.ErrDeadline, code: CodeTimeout, retryable: true, text: "the store did not get to the change in time; nothing was changed"},
		{is: backend.ErrPositionExpired, code: CodePositionExpired, text: "the changes after this cursor are no longer available: watch with snapshot: true, or list again and watch after the changeCursor of the first page"},
		{
			is:        backend.ErrLagged,
			code:      CodeLagged,
			retryable: true,
			text:      "the listener was too slow; resume after extensions.cursor",
		},
		{is: hub.ErrFull, code: CodeLimitExceeded, retryable: true, text: "the gateway has as many listeners as it can serve; try again later"},
		{is: backend.ErrReadOnly, code: CodeUnavailable, text: "this gateway is read-only and takes no changes: send them to another one"},
		{is: backend.ErrDamaged, code: CodeUnavailable, text: "the store is damaged; an administrator has to restore a copy"},
		{is: backend.ErrNoSpace, code: CodeUnavailable, retryable: true, text: "the store has no space left and takes no changes until there is some; nothing was changed"},
		{
			is:        backend.ErrUnavailable,
			code:      CodeUnavailable,
			retryable: true,
			text:      "the store is not available; try again",
		},
		{
			is:        backend.ErrClosed,
			code:      CodeUnavailable,
			retryable: true,
			text:      "the gateway is shutting down; try again",
		},
		{is: backend.ErrUnreadable, code: CodeUnreadable, text: "%s is stored in a form that this gateway cannot read"},
		{is: backend.ErrEncrypted, code: CodeUnreadable, text: "%s has values that this gateway cannot decrypt"},
		{is: context.DeadlineExceeded, code: CodeTimeout, retryable: true, text: "the request took longer than it may; nothing was changed by it"},
		{
			is:        context.Canceled,
			code:      CodeTimeout,
			retryable: true,
			text:      "the request was cancelled; nothing was changed by it",
		},
	}
}

// Of converts an error of a store into an error for a caller. If the error has a method Detail() string, Of adds its
// result to the message.
func Of(err error, key backend.Key) *Error {
	var known *Error
	if errors.As(err, &known) {
		return known
	}
	e := &Error{Code: CodeInternal, Message: "internal error", cause: err}
	for _, t := range translations() {
		if !errors.Is(err, t.is) {
			continue
		}
		e.Code = t.code
		e.Retryable = t.retryable
		e.Outcome = t.outcome
		e.Message = t.text
		if rest, about := strings.CutPrefix(t.text, "%s"); about {
			e.Message = Describe(key) + rest
		}
		break
	}
	if errors.Is(err, backend.ErrReadOnly) {
		e.Setting = "read-only"
	}
	var more interface{ Detail() string }
	if errors.As(err, &more) {
		e.Message += ": " + more.Detail()
	}
	var lagged *backend.LaggedError
	if errors.As(err, &lagged) {
		e.Cursor = lagged.Position.String()
	}
	var failed *backend.ConditionError
	if errors.As(err, &failed) && failed.Current != nil {
		e.CurrentRevision = failed.Current.Revision.String()
	}
	if key.Kind != "" {
		e.At(key)
	}
	return e
}

// Describe returns the text that stands for a resource in messages.
func Describe(key backend.Key) string {
	if key.Namespace == "" {
		return fmt.Sprintf("%s %q", key.Kind, key.Name)
	}
	return fmt.Sprintf("%s %q in namespace %q", key.Kind, key.Name, key.Namespace)
}

// BadInput returns BAD_USER_INPUT for the value at a path.
func BadInput(path, format string, args ...any) *Error {
	return &Error{Code: CodeBadUserInput, Path: path, Message: fmt.Sprintf(format, args...)}
}

// Shorten returns at most the first 64 characters of a text that the caller has sent, for use in an error.
func Shorten(s string) string {
	n := 0
	for at := range s { // stop early: s may be very long
		if n++; n > 64 {
			return s[:at] + "…"
		}
	}
	return s
}

// MaxPath is the maximum length of a path in an error, in bytes. It is longer than any field name and any key of a
// label.
const MaxPath = 1 << 10

// ShortenPath shortens a path to MaxPath bytes. A path may be longer because it can contain names that the caller has
// chosen.
func ShortenPath(path string) string {
	if len(path) > MaxPath {
		return strings.ToValidUTF8(path[:MaxPath], "") + "…"
	}
	return path
}

// Limited returns LIMIT_EXCEEDED for a fixed limit of the API.
func Limited(path, format string, limit int) *Error {
	return &Error{Code: CodeLimitExceeded, Path: path, Limit: limit, Message: path + ": " + fmt.Sprintf(format, limit)}
}

// WarningCode is the machine-readable code of a warning.
type WarningCode string

// The codes of warnings.
const (
	// WarningDeprecated: the request sets a deprecated field.
	WarningDeprecated WarningCode = "DEPRECATED"
	// WarningWaiting: a reference refers to a resource that is not ready yet.
	WarningWaiting WarningCode = "WAITING"
	// WarningCleared: a null in the patch has cleared a value.
	WarningCleared WarningCode = "CLEARED"
	// WarningNotReadable: the caller may create the resource but not read it, so the answer does not contain it.
	WarningNotReadable WarningCode = "NOT_READABLE"
	// WarningService: the warning comes from the service that owns or reviews the resource.
	WarningService WarningCode = "SERVICE"
)

// Warning accompanies a change that succeeded. It describes what else the caller should know.
type Warning struct {
	Code    WarningCode
	Message string
	// Path is the path of the value concerned, as in [Error.Path]; empty if there is none.
	Path string
	// Deprecated is the schema coordinate (Type.field, with the names of the API) of the deprecated field; empty unless
	// Code is WarningDeprecated.
	Deprecated string
}
