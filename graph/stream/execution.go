package stream

import (
	"context"
	"errors"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/sluicegw/sluice/backend/service/change"
	"github.com/sluicegw/sluice/backend/service/failure"
)

// Events makes the answers of one subscription. A [Loop] does so for changes of resources; a subscription that is
// written by hand makes its own.
type Events interface {
	// Next waits for the next event and returns its answer.
	Next(ctx context.Context) Answer
}

// Answer is what [Events] returns.
type Answer struct {
	// Response is the answer to an event; nil at the end of the subscription.
	Response *graphql.Response
	// Cursor is the cursor of the event, from which a client resumes; empty if it cannot.
	Cursor string
	// Errors are why the subscription has ended, as the client reads them; none if it is complete.
	Errors gqlerror.List
}

// Execution answers the changes of one subscription, or those of a group of equal ones. It does not wait for changes:
// a [Loop] or the group takes them.
type Execution interface {
	// Key is equal for executions whose answers are.
	Key() ShareKey
	// Changes returns the stream whose changes are answered.
	Changes() *change.Stream
	// Waiting returns the context of everything that waits for changes. It ends with the subscription, or earlier when
	// its catalogue is replaced. Then no other change is answered; an answer that has begun is not interrupted.
	Waiting() context.Context
	// Answer returns the answer to a change, in memory that the next answer uses again. An answer that exceeds its
	// budget is an error instead, which ends the subscription. Both are nil if ctx has ended.
	Answer(ctx context.Context, c *change.Change) (*graphql.Response, *gqlerror.Error)
	// Present returns an error that ends the subscription as the client reads it.
	Present(ctx context.Context, err error) *gqlerror.Error
	// Follow frees the memory that only answering needs, while another execution of the same key answers.
	Follow(leader Execution)
}

// ShareKey is equal for subscriptions that get equal events.
type ShareKey [32]byte

// ReplacedError returns the error that ends a subscription whose catalogue was replaced. The cursor is that of the last
// event; empty if the client cannot resume.
func ReplacedError(cursor string) error {
	how := "begin it again"
	if cursor != "" {
		how = "resume after extensions.cursor"
	}
	return &failure.Error{
		Code:      failure.CodeCatalogueChanged,
		Retryable: true,
		Cursor:    cursor,
		Message:   "the kinds of the gateway were replaced since the stream began; " + how,
	}
}

// errReplaced ends a group whose catalogue is no longer served.
var errReplaced = errors.New("the catalogue was replaced")
