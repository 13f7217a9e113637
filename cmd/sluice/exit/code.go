// Package exit turns errors into what the user reads on standard error, and into exit codes.
package exit

import (
	"errors"
	"strings"
)

// LinesError is a refusal of several lines, which are shown as they are. The user can correct its cause.
type LinesError struct{ Lines []string }

func (e LinesError) Error() string { return strings.Join(e.Lines, "\n") }

// Lines returns a refusal of several lines.
func Lines(lines []string) error { return LinesError{lines} }

// Exit codes.
const (
	CodeOK       = 0
	CodeFail     = 1
	CodeUsage    = 2
	CodeNotFound = 3
	CodePartial  = 4
)

// UsageError is a mistake in the command line, the environment or a file. It is also any failure of sluice diff, where
// CodeFail means that something differs.
type UsageError struct{ error }

func (e UsageError) Unwrap() error { return e.error }

// Usage returns err as a mistake of the user.
func Usage(err error) error { return UsageError{err} }

// NotFoundError is about a resource that was named and does not exist.
type NotFoundError struct{ error }

func (e NotFoundError) Unwrap() error { return e.error }

// NotFound returns err as one about a resource that does not exist.
func NotFound(err error) error { return NotFoundError{err} }

// PartialError means that all was changed that could be read, and that some resources could not be.
type PartialError struct{ error }

func (e PartialError) Unwrap() error { return e.error }

// Partial returns err as one of a change that left out unreadable resources.
func Partial(err error) error { return PartialError{err} }

// ErrReported means that the error has been printed.
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
