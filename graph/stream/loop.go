package stream

import (
	"context"

	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/service/change"
)

// Loop takes the changes of a subscription one after another and returns the answers to them.
type Loop struct {
	execution Execution
	// pending are changes that were taken and not answered yet.
	pending []change.Change
	// cursor is the cursor from which a client that has received all answers resumes; empty if it cannot.
	cursor string
	// replaced reports that the catalogue was replaced while the subscription followed a group.
	replaced bool
	// If pauses is set, Next returns without an answer at a point where the subscription may join a group. pausedAt is
	// that point, otherwise Busy.
	pauses   bool
	pausedAt change.JoinPoint
}

var _ Events = (*Loop)(nil)

// NewLoop returns a loop over the changes of an execution. cursor is the cursor from which the client resumes; empty if
// it does not.
func NewLoop(e Execution, cursor string) *Loop { return &Loop{execution: e, cursor: cursor} }

// Next waits for the next change and returns its answer.
func (l *Loop) Next(ctx context.Context) Answer {
	changes, waiting := l.execution.Changes(), l.waiting(ctx)
	l.pausedAt = change.Busy
	pending, err := changes.CheckRights(waiting, l.pending)
	for err == nil && len(pending) == 0 && !l.ended() {
		if l.pauses {
			l.pausedAt = changes.JoinPoint()
		}
		if l.pausedAt != change.Busy {
			break
		}
		pending, err = changes.Next(waiting)
	}
	l.pending = pending
	switch {
	case ctx.Err() != nil, l.pausedAt != change.Busy:
		return Answer{}
	case err != nil && !l.ended():
		return l.fail(ctx, err)
	case l.ended(): // pending changes are dropped: the client gets them again when it resumes
		return l.fail(ctx, ReplacedError(l.cursor))
	}
	c := &l.pending[0]
	l.pending = l.pending[1:]
	return l.answer(ctx, c)
}

// answerShared returns the answer to a change that a group has taken; the group has checked the rights.
func (l *Loop) answerShared(ctx context.Context, c *change.Change) Answer {
	switch {
	case ctx.Err() != nil:
		return Answer{}
	case l.ended():
		return l.fail(ctx, ReplacedError(l.cursor))
	}
	return l.answer(ctx, c)
}

// waiting returns the context in which the loop waits for changes and reads them. The cost of reading is charged to the
// next answer.
func (l *Loop) waiting(ctx context.Context) context.Context {
	return budget.With(l.execution.Waiting(), budget.From(ctx))
}

// ended reports whether no further change may be answered.
func (l *Loop) ended() bool { return l.replaced || l.execution.Waiting().Err() != nil }

// answer returns the answer to a change.
func (l *Loop) answer(ctx context.Context, c *change.Change) Answer {
	if c.Cursor != "" || c.Type == change.Reset { // after RESET there is nothing to resume from
		l.cursor = c.Cursor
	}
	res, err := l.execution.Answer(ctx, c)
	if err != nil {
		return Answer{Errors: gqlerror.List{err}}
	}
	return Answer{Response: res, Cursor: c.Cursor}
}

// fail returns the last answer of a subscription, which ends with an error.
func (l *Loop) fail(ctx context.Context, err error) Answer {
	return Answer{Errors: gqlerror.List{l.execution.Present(ctx, err)}}
}

// follow stops taking changes: the leader of a group takes them from now on.
func (l *Loop) follow(leader Execution) {
	l.execution.Follow(leader)
	l.pending = nil
}

// resume begins to take changes again, after a cursor. replaced reports that the catalogue was replaced.
func (l *Loop) resume(cursor string, replaced bool) {
	l.cursor = cursor
	l.replaced = replaced
}
