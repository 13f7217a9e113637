package stream

import (
	"context"

	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/service/change"
)

// Loop takes the changes of one subscription, one after the other, and has each answered.
type Loop struct {
	execution Execution
	// pending are the changes that were taken and are not yet answered.
	pending []change.Change
	// cursor is the cursor from which a client with all answers resumes; empty if it cannot.
	cursor string
	// retired means that the catalogue of the group that the subscription followed was replaced.
	retired bool
	// pauses means that Next returns without an answer where the subscription may join a group, pausedAt.
	pauses   bool
	pausedAt change.JoinPoint
}

var _ Events = (*Loop)(nil)

// NewLoop returns the loop of an execution. The cursor is the one from which the client has resumed; empty if it
// begins.
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
	case l.ended(): // pending changes come again after the cursor
		return l.fail(ctx, ReplacedError(l.cursor))
	}
	c := &l.pending[0]
	l.pending = l.pending[1:]
	return l.answer(ctx, c)
}

// answerShared returns the answer to a change that a group has taken, whose rights the group has compared.
func (l *Loop) answerShared(ctx context.Context, c *change.Change) Answer {
	switch {
	case ctx.Err() != nil:
		return Answer{}
	case l.ended():
		return l.fail(ctx, ReplacedError(l.cursor))
	}
	return l.answer(ctx, c)
}

// waiting returns the context in which the loop waits for changes and reads them, at the expense of the next answer.
func (l *Loop) waiting(ctx context.Context) context.Context {
	return budget.With(l.execution.Waiting(), budget.From(ctx))
}

// ended reports whether only the end of the subscription may still be sent.
func (l *Loop) ended() bool { return l.retired || l.execution.Waiting().Err() != nil }

// answer returns the answer to a change.
func (l *Loop) answer(ctx context.Context, c *change.Change) Answer {
	if c.Cursor != "" || c.Type == change.Reset {
		l.cursor = c.Cursor
	}
	res, err := l.execution.Answer(ctx, c)
	if err != nil {
		return Answer{Errors: gqlerror.List{err}}
	}
	return Answer{Response: res, Cursor: c.Cursor}
}

// fail returns the end of a subscription for an error.
func (l *Loop) fail(ctx context.Context, err error) Answer {
	return Answer{Errors: gqlerror.List{l.execution.Present(ctx, err)}}
}

// follow leaves the changes to the leader of a group.
func (l *Loop) follow(leader Execution) {
	l.execution.Follow(leader)
	l.pending = nil
}

// resume makes the loop take the changes after a cursor again. replaced means that the catalogue of the group was
// replaced.
func (l *Loop) resume(cursor string, replaced bool) {
	l.cursor = cursor
	l.retired = replaced
}
