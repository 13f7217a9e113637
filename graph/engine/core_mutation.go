package engine

import (
	"context"
	"maps"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/sluicegw/sluice/backend/service/failure"
)

// coreMutation follows the execution of a mutation's root field by the core, so that errors report
// whether the change was made. Such a field has no dry run.
type coreMutation struct {
	run *run
	// begun is set once the resolver of the root field is called, and applied once it has returned without an error.
	begun, applied bool
}

// context returns a context for the core whose errors have the outcome of the change.
func (m *coreMutation) context(ctx context.Context) context.Context {
	oc := graphql.GetOperationContext(ctx)
	oc.ResolverMiddleware = m.middleware(oc.ResolverMiddleware)
	oc.RecoverFunc = m.recovered
	return graphql.WithResponseContext(ctx, m.present, m.recovered)
}

// middleware returns the middleware that notes what becomes of the root field.
func (m *coreMutation) middleware(next graphql.FieldMiddleware) graphql.FieldMiddleware {
	return func(ctx context.Context, resolve graphql.Resolver) (any, error) {
		if graphql.GetFieldContext(ctx).Object != m.run.engine.schema.Mutation.Name {
			return next(ctx, resolve)
		}
		m.begun = true
		out, err := next(ctx, resolve)
		m.applied = err == nil
		return out, err
	}
}

// present returns an error with the outcome APPLIED if the change was made.
func (m *coreMutation) present(ctx context.Context, err error) *gqlerror.Error {
	out := graphql.DefaultErrorPresenter(ctx, err)
	if m.applied {
		applied := *out
		applied.Extensions = map[string]any{"outcome": failure.OutcomeApplied}
		maps.Copy(applied.Extensions, out.Extensions)
		return &applied
	}
	return out
}

// recovered returns the error of a panic. A panic of the resolver may have come before or after the
// change.
func (m *coreMutation) recovered(ctx context.Context, v any) error {
	err := m.run.oc.RecoverFunc(ctx, v)
	if m.begun && !m.applied {
		return &failure.Error{Code: failure.CodeInternal, Message: "internal error", Outcome: failure.OutcomeUnknown}
	}
	return err
}
