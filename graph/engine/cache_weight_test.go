package engine_test

import (
	"strings"
	"testing"

	"github.com/99designs/gqlgen/graphql"
)

// A document weighs what its plans have: each truth of its conditions, and what is compiled
// when a value of an interface is met.
func TestADocumentWeighsTheFieldsOfItsPlans(t *testing.T) {
	g := newGateway(t, shelves(t), nil)
	fields := strings.Repeat("...F ", 3) + "} fragment F on Query { a: __typename b: __typename c: __typename @include(if: $x)"
	first, errs := g.prepare(`query($x: Boolean!) { `+fields+` }`, map[string]any{"x": true})
	if errs != nil {
		t.Fatal(errs)
	}
	var weights []int
	g.engine.Keep(first.Doc, func(n int) { weights = append(weights, n) })
	for _, x := range []bool{true, false, true, false} {
		next, ctx := g.exec.DispatchOperation(t.Context(), &graphql.OperationContext{
			RawQuery: first.RawQuery, Doc: first.Doc, Operation: first.Operation, Variables: map[string]any{"x": x},
			RecoverFunc: first.RecoverFunc, ResolverMiddleware: first.ResolverMiddleware, RootResolverMiddleware: first.RootResolverMiddleware,
		})
		next(ctx)
	}
	if len(weights) != 2 || weights[0] != 3 || weights[1] != 2 {
		t.Errorf("weighed %v; want 3 fields with one truth and 2 with the other, each once", weights)
	}
}
