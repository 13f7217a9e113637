// Package exit converts errors to messages for the user, and to exit codes.
package exit

import (
	"errors"
	"strings"
)

// LinesError is an error of several lines, which are printed unchanged. The user can correct its cause.
type LinesError struct{ Lines []string }

func (e LinesError) Error() string { return strings.Join(e.Lines, "\n") }

// Lines returns an error of several lines.
func Lines(lines []string) error { return LinesError{lines} }

// The exit codes.
const (
	CodeOK       = 0
	CodeFail     = 1
	CodeUsage    = 2
	CodeNotFound = 3
	CodePartial  = 4
)

// UsageError is a mistake in the command line, the environment or a file. For sluice diff it is any error, because
// there CodeFail means that there are differences.
type UsageError struct{ error }

func (e UsageError) Unwrap() error { return e.error }

// Usage returns err as a [UsageError].
func Usage(err error) error { return UsageError{err} }

// NotFoundError means that a named resource does not exist.
type NotFoundError struct{ error }

func (e NotFoundError) Unwrap() error { return e.error }

// NotFound returns err as a [NotFoundError].
func NotFound(err error) error { return NotFoundError{err} }

// PartialError means that the command left out some resources because the gateway cannot read them. It has changed all
// others.
type PartialError struct{ error }

func (e PartialError) Unwrap() error { return e.error }

// Partial returns err as a [PartialError].
func Partial(err error) error { return PartialError{err} }

// ErrReported means that the error was already printed.
var ErrReported = errors.New("reported")

// CodeOf returns the exit code for an error.
func CodeOf(err error) int {
	var wrong UsageError
	var absent NotFoundError
	switch {
	case errors.As(err, &wrong):
		return CodeUsage
	case errors.As(err, &absent):
		return CodeNotFound
	case errors.As(err, new(PartialError)):
		return CodePartial
	}
	return CodeFail
}

func OneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }
