package transport

import (
	"context"

	"github.com/vektah/gqlparser/v2/gqlerror"
)

// API is what a transport serves: an [Executor], or what chooses one for each
// operation that begins.
type API interface {
	// Prepare is [Executor.Prepare].
	Prepare(ctx context.Context, r *Request) (*Operation, gqlerror.List)
	// Refuse is [Executor.Refuse].
	Refuse(ctx context.Context, errs ...*gqlerror.Error) []byte
	// Present is [Executor.Present].
	Present(ctx context.Context, errs gqlerror.List) gqlerror.List
}

var _ API = (*Executor)(nil)
