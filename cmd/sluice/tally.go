package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/sluicegw/sluice/graph/client"
)

// tally counts how it went with several resources.
type tally struct {
	failed, absent bool
	// partial reports whether resources were left out since the gateway cannot read them.
	partial bool
}

// count counts an error of which the user was told.
func (t *tally) count(err error) {
	var absent notFoundError
	if code(err) == "NOT_FOUND" || errors.As(err, &absent) {
		t.absent = true
		return
	}
	t.failed = true
}

// note counts an error and tells the user.
func (t *tally) note(std streams, err error) {
	explain(std, "sluice", err)
	t.count(err)
}

// err returns what the command ends with.
func (t *tally) err() error {
	switch {
	case t.failed:
		return errReported
	case t.absent:
		return notFoundError{errReported}
	case t.partial:
		return partialError{errReported}
	}
	return nil
}

// unreadable reports whether an error is that a list had to leave out resources, which was otherwise read to its end. It
// tells the user of that.
func unreadable(std streams, err error) bool {
	var left *client.UnreadableError
	if !errors.As(err, &left) {
		return false
	}
	tellUnreadable(std, left)
	return true
}

func tellUnreadable(std streams, left *client.UnreadableError) {
	_, _ = fmt.Fprintf(std.err, "sluice: %s (sluice get %s --unreadable lists them)\n", printable(left.Error()), printable(left.Kind.Plural))
}

// each calls do for each of several resources and counts the errors, of which do tells the user. It stops when
// [tally.halted] reports true.
func each[T any](ctx context.Context, std streams, t *tally, list []T, do func(T) error) {
	for i, one := range list {
		std.progress(i+1, len(list))
		err := do(one)
		if err != nil {
			t.count(err)
		}
		if t.halted(ctx, std, err, len(list)-i-1) {
			return
		}
	}
}

// halted reports whether nothing more is to be sent, and tells the user how much is left: after a ^C, if nobody
// answers, and if the gateway does not know the caller.
func (t *tally) halted(ctx context.Context, std streams, err error, left int) bool {
	if ctx.Err() == nil && !unauthenticated(err) && !errors.As(err, new(*client.UnansweredError)) {
		return false
	}
	t.failed = t.failed || left > 0
	switch {
	case left > 0 && err == nil:
		_, _ = fmt.Fprintf(std.err, "sluice: interrupted; %d not sent\n", left)
	case left > 0:
		_, _ = fmt.Fprintf(std.err, "sluice: %d not sent\n", left)
	}
	return true
}
