package stream

import (
	"context"

	"github.com/99designs/gqlgen/graphql"
)

// Accounts gives each answer a budget.
type Accounts interface {
	// Open returns a context with a budget for one answer.
	Open(ctx context.Context) context.Context
	// Close charges the caller for the answer, and adds the extensions that the request asks for. res may be nil.
	Close(ctx context.Context, res *graphql.Response)
}

// Responder provides each answer with a budget, errors and extensions. All fields are required.
type Responder struct {
	Accounts Accounts
	// Present returns the form of an error for clients.
	Present graphql.ErrorPresenterFunc
	// Recover logs a panic and returns its error.
	Recover graphql.RecoverFunc
}

// Context returns a context that collects errors and extensions.
func (r Responder) Context(ctx context.Context) context.Context {
	return graphql.WithResponseContext(ctx, r.Present, r.Recover)
}

// Respond calls answer with a new context, and adds the errors and extensions of that context to the response. It
// returns nil if answer does, or if ctx has ended.
func (r Responder) Respond(
	ctx context.Context, answer func(context.Context) *graphql.Response,
) (res *graphql.Response) {
	if ctx.Err() != nil {
		return nil
	}
	ctx = r.Accounts.Open(r.Context(ctx))
	defer func() { r.Accounts.Close(ctx, res) }()
	res = answer(ctx)
	if res != nil {
		res.Errors = append(res.Errors, graphql.GetErrors(ctx)...)
		res.Extensions = graphql.GetExtensions(ctx)
	}
	return res
}
