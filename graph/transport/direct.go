package transport

import (
	"context"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// Direct executes queries and mutations without gqlgen's executor. What that does around
// each of them, besides this, is for extensions that the gateway does not have, and costs as
// much as a read from memory. All fields are required.
type Direct struct {
	// Engine executes an operation, in a context that has it and a response.
	Engine interface {
		Respond(ctx context.Context, oc *graphql.OperationContext) *graphql.Response
	}
	// Variables judges and coerces the variables of an operation. It may change those given.
	Variables func(op *ast.OperationDefinition, given map[string]any) (map[string]any, *gqlerror.Error)
	// Around stands around each response.
	Around graphql.ResponseMiddleware
	// Present and Recover are those of the executor.
	Present graphql.ErrorPresenterFunc
	Recover graphql.RecoverFunc
}

// operation is the query or mutation of a document that a request means; nil if it is
// none, or means a subscription: gqlgen's executor has these.
func (d *Direct) operation(doc *ast.QueryDocument, name string) *ast.OperationDefinition {
	if d == nil {
		return nil
	}
	if op := doc.Operations.ForName(name); op != nil && op.Operation != ast.Subscription {
		return op
	}
	return nil
}

// prepare fills the context of an operation in.
func (d *Direct) prepare(oc *graphql.OperationContext, doc *ast.QueryDocument, r *Request) *gqlerror.Error {
	variables, err := d.Variables(oc.Operation, r.Variables)
	if err != nil {
		return err
	}
	oc.Doc, oc.Variables, oc.OperationName, oc.Extensions = doc, variables, r.OperationName, r.Extensions
	oc.RecoverFunc, oc.ResolverMiddleware, oc.RootResolverMiddleware = d.Recover, resolve, resolveRoot
	return nil
}

// resolve and resolveRoot are the middleware of fields: there is none.
func resolve(ctx context.Context, next graphql.Resolver) (any, error) { return next(ctx) }

func resolveRoot(ctx context.Context, next graphql.RootResolver) graphql.Marshaler { return next(ctx) }

// respond executes an operation; nil if ctx had ended before.
func (d *Direct) respond(ctx context.Context, oc *graphql.OperationContext) *graphql.Response {
	if ctx.Err() != nil {
		return nil
	}
	ctx = graphql.WithResponseContext(graphql.WithOperationContext(ctx, oc), d.Present, d.Recover)
	return d.Around(ctx, func(ctx context.Context) *graphql.Response {
		res := d.Engine.Respond(ctx, oc)
		res.Errors = append(res.Errors, graphql.GetErrors(ctx)...)
		return res
	})
}

// began is when an operation began, as gqlgen counts it.
func began(at time.Time) graphql.Stats {
	return graphql.Stats{OperationStart: at, Read: graphql.TraceTiming{Start: at, End: at}}
}
