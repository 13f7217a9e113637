package transport

import (
	"context"

	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/service/failure"
)

// connected is the context of the subscriptions of one connection, whose events share an
// allowance.
func connected(ctx context.Context, events *budget.Allowance) context.Context {
	return budget.WithShared(ctx, budget.Shared{Events: events.Connection()})
}

// keep gives back what the request of a subscription took, but for what it keeps of it
// while it runs, which done gives back. It returns false if there is no room for that.
func keep(m *budget.Memory, taken int64) (done func(), ok bool) {
	m.Requests().Give(taken)
	if !m.Subscriptions().Take(taken) {
		return nil, false
	}
	return func() { m.Subscriptions().Give(taken) }, true
}

// overBudget refuses a request, an operation or an event for want of memory.
func overBudget(m *budget.Memory) *gqlerror.Error {
	out := &gqlerror.Error{Message: budget.ErrBusy.Error(), Extensions: map[string]any{
		"code": string(failure.CodeUnavailable), "key": budget.MemoryKey, "retryable": true, "retryAfter": budget.RetryAfter,
	}}
	if m != nil {
		out.Extensions["limit"] = m.Most()
	}
	return out
}
