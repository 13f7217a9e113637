package owner

import (
	"context"
	"errors"
	"time"

	"github.com/sluicegw/sluice/backend"
)

// The outcomes of calls for [Observed], in addition to the outcomes of an [Answer].
const (
	// CallOK means that the service has answered a call other than a write or a delete.
	CallOK = "OK"
	// CallNotSent means that the call was not sent.
	CallNotSent = "NOT_SENT"
	// CallUnimplemented means that the service does not have the call.
	CallUnimplemented = "UNIMPLEMENTED"
	// CallCancelled means that the caller has given up.
	CallCancelled = "CANCELLED"
	// CallLost means that there was no valid answer.
	CallLost = "LOST"
)

// Observed returns a service that forwards all calls to s. After each call it calls seen with the name of the method
// and the outcome.
func Observed(s Service, seen func(method, outcome string)) Service { return &observed{s, seen} }

type observed struct {
	service Service
	seen    func(method, outcome string)
}

var _ Service = (*observed)(nil)

// note reports the outcome of a call, or the outcome that follows from its error.
func (o *observed) note(ctx context.Context, method, outcome string, err error) {
	switch {
	case err == nil:
	case errors.Is(err, ErrNotSent):
		outcome = CallNotSent
	case errors.Is(err, ErrUnimplemented):
		outcome = CallUnimplemented
	case errors.Is(ctx.Err(), context.Canceled):
		outcome = CallCancelled
	default:
		outcome = CallLost
	}
	o.seen(method, outcome)
}

// Describe implements [Service].
func (o *observed) Describe(ctx context.Context) (Description, error) {
	out, err := o.service.Describe(ctx)
	o.note(ctx, "Describe", CallOK, err)
	return out, err
}

// List implements [Service].
func (o *observed) List(ctx context.Context, kind, token string, size int) (Page, error) {
	out, err := o.service.List(ctx, kind, token, size)
	o.note(ctx, "List", CallOK, err)
	return out, err
}

// Get implements [Service].
func (o *observed) Get(ctx context.Context, keys []backend.Key) ([]Got, error) {
	out, err := o.service.Get(ctx, keys)
	o.note(ctx, "Get", CallOK, err)
	return out, err
}

// Changes implements [Service].
func (o *observed) Changes(ctx context.Context, position string, wait time.Duration) (Changes, error) {
	out, err := o.service.Changes(ctx, position, wait)
	o.note(ctx, "Changes", CallOK, err)
	return out, err
}

// Write implements [Service].
func (o *observed) Write(ctx context.Context, w Write) (Answer, error) {
	out, err := o.service.Write(ctx, w)
	o.note(ctx, "Write", out.Outcome.String(), err)
	return out, err
}

// Delete implements [Service].
func (o *observed) Delete(ctx context.Context, d Delete) (Answer, error) {
	out, err := o.service.Delete(ctx, d)
	o.note(ctx, "Delete", out.Outcome.String(), err)
	return out, err
}
