package stream

import (
	"context"
	"errors"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/sluicegw/sluice/backend/service/change"
	"github.com/sluicegw/sluice/backend/service/failure"
)

// Events returns the answers of a subscription one after the other. A [Loop] implements it for subscriptions to
// changes. Subscriptions with hand-written resolvers have another implementation.
type Events interface {
	// Next waits for the next event and returns its answer.
	Next(ctx context.Context) Answer
}

// Answer is the result of [Events].Next.
type Answer struct {
	// Response is the answer to an event. It is nil at the end of the subscription. It is also nil if the loop pauses
	// or the context of Next has ended.
	Response *graphql.Response
	// Cursor is the cursor from which a client resumes after this event; empty if it cannot.
	Cursor string
	// Errors are the errors with which the subscription ends, in the form for clients; empty if it ends normally.
	Errors gqlerror.List
}

// Execution answers the changes of a subscription, or of a group of equal subscriptions. A [Loop] or the group waits
// for the changes.
type Execution interface {
	// Key returns the key of the execution.
	Key() ShareKey
	// Changes returns the stream whose changes are answered.
	Changes() *change.Stream
	// Waiting returns the context for waiting for changes. It ends with the subscription, or earlier if the catalogue
	// is replaced. No change is answered after that, but an answer that has begun is completed.
	Waiting() context.Context
	// Answer returns the answer to a change. It is valid until the next call. If the answer exceeds its budget, Answer
	// returns an error, which ends the subscription. If ctx has ended, both results are nil.
	Answer(ctx context.Context, c *change.Change) (*graphql.Response, *gqlerror.Error)
	// Present returns the form for clients of an error that ends the subscription.
	Present(ctx context.Context, err error) *gqlerror.Error
	// Follow is called when leader begins to answer in place of this execution. It releases memory that is needed only
	// for answers.
	Follow(leader Execution)
}

// ShareKey is the key of an [Execution]. Executions with the same key give the same answers to the same changes.
type ShareKey [32]byte

// ReplacedError returns the error that ends a subscription when its catalogue is replaced. cursor is the cursor of the
// last event; empty if the client cannot resume.
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

// errReplaced is the error of a group whose catalogue was replaced.
var errReplaced = errors.New("the catalogue was replaced")
