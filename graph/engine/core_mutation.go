package engine

import (
	"context"
	"maps"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/sluicegw/sluice/backend/service/failure"
)

// coreMutation observes how the core executes a root field of a mutation, so that errors can report whether the change
// was made. Such fields have no dry run.
type coreMutation struct {
	run *run
	// begun is set when the resolver of the root field is called. applied is set when it has returned without an error.
	begun, applied bool
}

// context returns a context for the core in which errors report the outcome of the change.
func (m *coreMutation) context(ctx context.Context) context.Context {
	oc := graphql.GetOperationContext(ctx)
	oc.ResolverMiddleware = m.middleware(oc.ResolverMiddleware)
	oc.RecoverFunc = m.recovered
	return graphql.WithResponseContext(ctx, m.present, m.recovered)
}

// middleware returns the middleware that sets begun and applied.
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

// present returns the error for the client, with the outcome APPLIED if the change was made.
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

// recovered returns the error after a panic. If the resolver itself has panicked, it is not known whether the change
// was made.
func (m *coreMutation) recovered(ctx context.Context, v any) error {
	err := m.run.oc.RecoverFunc(ctx, v)
	if m.begun && !m.applied {
		return &failure.Error{Code: failure.CodeInternal, Message: "internal error", Outcome: failure.OutcomeUnknown}
	}
	return err
}
