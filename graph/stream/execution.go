package stream

import (
	"context"
	"errors"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/sluicegw/sluice/backend/service/change"
	"github.com/sluicegw/sluice/backend/service/failure"
)

// Events makes the answers of one subscription. A [Loop] does so for changes of resources; subscriptions of the core
// (resolvers) implement Events themselves.
type Events interface {
	// Next waits for the next event and returns its answer.
	Next(ctx context.Context) Answer
}

// Answer is the result of [Events].Next.
type Answer struct {
	// Response is the answer to an event; nil at the end of the subscription, and also if the loop pauses or ctx has
	// ended.
	Response *graphql.Response
	// Cursor from which a client resumes after the event; empty if it cannot.
	Cursor string
	// Errors end the subscription, as the client is told; empty for a normal end.
	Errors gqlerror.List
}

// Execution answers the changes of one subscription, or of a group of equal ones. It does not wait
// for changes; a [Loop] or the group does.
type Execution interface {
	// Executions with the same key give the same answers to the same changes.
	Key() ShareKey
	// Changes returns the stream whose changes are answered.
	Changes() *change.Stream
	// Waiting returns the context for all waits for changes. It ends with the subscription, or
	// earlier if its catalogue is replaced. After that no further change is answered, but an answer
	// that has begun is finished.
	Waiting() context.Context
	// Answer returns the answer to a change. The next answer reuses its memory. If the answer
	// exceeds its budget, Answer returns an error, which ends the subscription. Both results are
	// nil if ctx has ended.
	Answer(ctx context.Context, c *change.Change) (*graphql.Response, *gqlerror.Error)
	// Present returns an error that ends the subscription in the form for clients.
	Present(ctx context.Context, err error) *gqlerror.Error
	// Follow releases the memory that is only needed to answer, while the execution leader answers.
	Follow(leader Execution)
}

// ShareKey is the key of an [Execution]. Executions with the same key give the same answers to the same changes.
type ShareKey [32]byte

// ReplacedError returns the error that ends a subscription when its catalogue is replaced. cursor
// is the cursor of the last event; empty if the client cannot resume.
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
