package exit

import (
	"context"
	"errors"
	"fmt"

	"github.com/sluicegw/sluice/cmd/sluice/terminal"
	"github.com/sluicegw/sluice/graph/client"
)

// Status collects the results for several resources.
type Status struct {
	Failed, Absent bool
	// Partial reports whether resources were left out because the gateway cannot read them.
	Partial bool
}

// Count counts an error that was already printed.
func (t *Status) Count(err error) {
	var absent NotFoundError
	if APICode(err) == "NOT_FOUND" || errors.As(err, &absent) {
		t.Absent = true
		return
	}
	t.Failed = true
}

// Note prints an error and counts it.
func (t *Status) Note(std terminal.Streams, err error) {
	Explain(std, "sluice", err)
	t.Count(err)
}

// Err returns the error of the command; nil if there were no errors.
func (t *Status) Err() error {
	switch {
	case t.Failed:
		return ErrReported
	case t.Absent:
		return NotFound(ErrReported)
	case t.Partial:
		return Partial(ErrReported)
	}
	return nil
}

// Each calls do for each element of a list, and counts the errors. do must print its error. Each stops when
// [Status.Halted] returns true.
func Each[T any](ctx context.Context, std terminal.Streams, t *Status, list []T, do func(T) error) {
	for i, one := range list {
		std.Progress(i+1, len(list))
		err := do(one)
		if err != nil {
			t.Count(err)
		}
		if t.Halted(ctx, std, err, len(list)-i-1) {
			return
		}
	}
}

// Halted reports whether the command must not send anything more: after ^C, if the gateway does not answer, or if the
// gateway does not accept the credential. It then prints how many elements are left.
func (t *Status) Halted(ctx context.Context, std terminal.Streams, err error, left int) bool {
	if ctx.Err() == nil && !Unauthenticated(err) && !errors.As(err, new(*client.UnansweredError)) {
		return false
	}
	t.Failed = t.Failed || left > 0
	switch {
	case left > 0 && err == nil:
		_, _ = fmt.Fprintf(std.Err, "sluice: interrupted; %d not sent\n", left)
	case left > 0:
		_, _ = fmt.Fprintf(std.Err, "sluice: %d not sent\n", left)
	}
	return true
}
