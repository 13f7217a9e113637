package stream

import (
	"context"

	"github.com/99designs/gqlgen/graphql"
)

// Accounts gives each answer a budget.
type Accounts interface {
	// Open returns the context for one answer, with a budget.
	Open(ctx context.Context) context.Context
	// Close charges the caller for the answer, and adds the extensions that the request asked for. res is nil if there
	// is no answer.
	Close(ctx context.Context, res *graphql.Response)
}

// Responder makes answers. Each has its own budget, errors and extensions. All fields are required.
type Responder struct {
	Accounts Accounts
	// Present returns an error in the form for clients.
	Present graphql.ErrorPresenterFunc
	// Recover logs a panic and returns its error.
	Recover graphql.RecoverFunc
}

// Context returns a context with new errors and extensions.
func (r Responder) Context(ctx context.Context) context.Context {
	return graphql.WithResponseContext(ctx, r.Present, r.Recover)
}

// Respond calls answer in a context of its own, and adds the errors and extensions of that context. It returns nil if
// answer returns nil, or if ctx had ended.
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
