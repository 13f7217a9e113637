package server

import (
	"context"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/service/query/plan"
)

// budget returns the limits as the budget of an operation.
func (l Limits) budget() budget.Limits {
	return budget.Limits{
		budget.Rows:    int64(l.Rows),
		budget.Objects: int64(l.Objects),
		budget.Bytes:   l.Answer,
		budget.Held:    l.Held,
		budget.Steps:   int64(l.Steps),
	}
}

// eventShare makes the limits of events smaller: an event may take 1/eventShare of the rows, objects and steps that an
// operation may take. An event is about one resource, and many clients may receive it.
const eventShare = 10

// ofEvent returns the limits of an event, given the limits of an operation.
func ofEvent(l budget.Limits) budget.Limits {
	for _, t := range []budget.Thing{budget.Rows, budget.Objects, budget.Steps} {
		l[t] = max(l[t]/eventShare, 1)
	}
	l[budget.Held] = max(l[budget.Held]/4, 1)
	return l
}

// Open implements [stream.Accounts]. An event has a smaller budget than a query or a mutation.
func (a *api) Open(ctx context.Context) context.Context {
	op := graphql.GetOperationContext(ctx)
	limits, shared := a.cfg.Limits.budget(), budget.SharedFrom(ctx)
	shared.CPUSlots = a.cpuSlots
	if op.Operation.Operation == ast.Subscription {
		limits = ofEvent(limits)
		limits[budget.Events] = int64(a.cfg.Limits.Events)
	} else {
		shared.Events = nil
	}
	ctx = budget.With(ctx, budget.NewShared(limits, shared))
	if op.Operation.Operation != ast.Subscription {
		ctx = a.traceOperation(ctx, op)
	}
	if requestsExtension(op, "explain") {
		ctx, _ = plan.WithExplanation(ctx)
	}
	return ctx
}

// Close implements [stream.Accounts]. If a query was halted, the client gets only the last error, because the others
// are about an answer that is not sent.
func (a *api) Close(ctx context.Context, res *graphql.Response) {
	op, spent := graphql.GetOperationContext(ctx), budget.From(ctx)
	defer spent.End()
	if res != nil && spent.Halted() && len(res.Errors) > 1 {
		res.Errors = res.Errors[len(res.Errors)-1:]
	}
	a.account(ctx, op, spent)
	a.endOperation(ctx, op, res, spent)
	if requestsExtension(op, "cost") {
		setExtension(res, "cost", cost(spent))
	}
	if requestsExtension(op, "explain") {
		setExtension(res, "explain", plan.ExplanationFrom(ctx).Reads())
	}
}

// requestsExtension reports whether a request asks for an extension of the answer.
func requestsExtension(op *graphql.OperationContext, name string) bool {
	wanted, _ := op.Extensions[name].(bool)
	return wanted
}

// setExtension adds an extension to an answer. res may be nil.
func setExtension(res *graphql.Response, name string, value any) {
	if res == nil {
		return
	}
	if res.Extensions == nil {
		res.Extensions = map[string]any{}
	}
	res.Extensions[name] = value
}

// cost returns what was spent of each thing, by name.
func cost(spent *budget.Budget) map[string]int64 {
	out := map[string]int64{}
	for t := range budget.Things {
		out[t.String()] = spent.Spent(t)
	}
	return out
}
