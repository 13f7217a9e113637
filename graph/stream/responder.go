package stream

import (
	"context"

	"github.com/99designs/gqlgen/graphql"
)

// Accounts gives each answer a budget.
type Accounts interface {
	// Open returns the context of one answer, with a budget.
	Open(ctx context.Context) context.Context
	// Close charges what the answer of ctx has spent to its caller, and adds what the request wants to know of it. res
	// is nil if there is no answer.
	Close(ctx context.Context, res *graphql.Response)
}

// Responder makes answers, each with a budget, errors and extensions of its own. All fields are required.
type Responder struct {
	Accounts Accounts
	// Present returns the error that a client is told.
	Present graphql.ErrorPresenterFunc
	// Recover logs a panic and returns its error.
	Recover graphql.RecoverFunc
}

// Context returns a context with errors and extensions of its own.
func (r Responder) Context(ctx context.Context) context.Context {
	return graphql.WithResponseContext(ctx, r.Present, r.Recover)
}

// Respond returns the answer that next makes in a context of its own, with the errors and extensions of that context.
// It returns nil if next does, or if ctx has ended before.
func (r Responder) Respond(
	ctx context.Context, next func(context.Context) *graphql.Response,
) (res *graphql.Response) {
	if ctx.Err() != nil {
		return nil
	}
	ctx = r.Accounts.Open(r.Context(ctx))
	defer func() { r.Accounts.Close(ctx, res) }()
	res = next(ctx)
	if res != nil {
		res.Errors = append(res.Errors, graphql.GetErrors(ctx)...)
		res.Extensions = graphql.GetExtensions(ctx)
	}
	return res
}
