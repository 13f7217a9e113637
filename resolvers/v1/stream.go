package resolvers

import (
	"context"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service"
	live "github.com/sluicegw/sluice/graph/stream"
)

// event is a change with what the API shows as null where it is empty.
type event struct {
	*service.Change
	cursor, revision *string
}

// stream begins a subscription: a goroutine pumps the changes into the channel
// that it returns, waits for the client each time, and closes the channel when
// the context or the stream ends. It tells the transport the cursor of every
// event and why the stream ended.
func stream[T any](ctx context.Context, r *Resolver, req service.ChangesRequest, build func(*event) *T) (<-chan *T, error) {
	if len(req.Kinds) > maxKinds {
		return nil, tooLong("kinds", "maxItems", maxKinds, "elements")
	}
	state := live.From(ctx)
	req.After = state.Resume(req.After)
	changes, err := r.service.Changes(ctx, caller(ctx), req)
	if err != nil {
		return nil, fail(ctx, err)
	}
	out := make(chan *T)
	go func() {
		defer close(out)
		defer changes.Close()
		if err := pump(ctx, changes, func(c *service.Change) bool {
			state.Push(c.Cursor)
			select {
			case out <- build(&event{Change: c, cursor: nonempty(c.Cursor), revision: nonempty(c.Revision)}):
				return true
			case <-ctx.Done():
				return false
			}
		}); err != nil {
			state.End(presented(ctx, err)...)
		}
	}()
	return out, nil
}

// pump hands on changes until the receiver or the context ends, or an error.
func pump(ctx context.Context, changes *service.Changes, send func(*service.Change) bool) error {
	for {
		batch, err := changes.Next(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		for i := range batch {
			if !send(&batch[i]) {
				return nil
			}
		}
	}
}

// presented is an error in the words of the server's error presenter, which the
// context of a subscription carries.
func presented(ctx context.Context, err error) gqlerror.List {
	graphql.AddError(ctx, err)
	all := graphql.GetErrors(ctx)
	return all[max(len(all)-1, 0):]
}

// changed is the resource of an event as the type of its kind; zero for a mark
// and for a deleted one that cannot be read.
func changed[T backend.Object](ctx context.Context, c *service.Change) (T, error) {
	obj, err := c.Object()
	return as[T](obj), fail(ctx, err)
}

func nonempty(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
