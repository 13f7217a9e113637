package server

import (
	"context"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/errcode"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// oneStream refuses subscriptions that would begin no stream or several:
// gqlparser counts the names of root fields and not the fields, and cannot know
// what @skip and @include leave of them.
type oneStream struct{ root string } // the name of the root type

var _ interface {
	graphql.OperationContextMutator
	graphql.HandlerExtension
} = oneStream{}

// ExtensionName is the name in gqlgen's errors.
func (oneStream) ExtensionName() string { return "OneStream" }

// Validate accepts every schema.
func (oneStream) Validate(graphql.ExecutableSchema) error { return nil }

// MutateOperationContext judges a valid operation with its variables.
func (s oneStream) MutateOperationContext(_ context.Context, oc *graphql.OperationContext) *gqlerror.Error {
	if oc.Operation.Operation != ast.Subscription {
		return nil
	}
	fields := graphql.CollectFields(oc, oc.Operation.SelectionSet, []string{s.root})
	if len(fields) == 1 {
		return nil
	}
	err := gqlerror.ErrorPosf(oc.Operation.Position, "a subscription selects exactly one root field; this one selects %d", len(fields))
	errcode.Set(err, errcode.ValidationFailed)
	return err
}
