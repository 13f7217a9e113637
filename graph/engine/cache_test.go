package engine_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/99designs/gqlgen/graphql"
)

// A document is forgotten while it is executed, and kept again: each answer is
// that of the truth of its conditions.
func TestPlansOfADocumentAreKeptAndForgottenUnderLoad(t *testing.T) {
	g := newGateway(t, shelves(t), nil)
	first, errs := g.prepare(`query($a: Boolean!, $b: Boolean!) { resources(kind: "Service") { totalCount nodes @skip(if: $a) { id ... on Node @include(if: $b) { __typename } } } }`, map[string]any{"a": true, "b": true})
	if errs != nil {
		t.Fatal(errs)
	}
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			for i := range 200 {
				if n == 0 {
					g.engine.Keep(first.Doc, func(int) {})
					g.engine.Forget(first.Doc)
					continue
				}
				a, b := i&1 == 0, i&2 == 0
				next, ctx := g.exec.DispatchOperation(t.Context(), &graphql.OperationContext{
					RawQuery: first.RawQuery, Doc: first.Doc, Operation: first.Operation, Variables: map[string]any{"a": a, "b": b},
					RecoverFunc: first.RecoverFunc, ResolverMiddleware: first.ResolverMiddleware, RootResolverMiddleware: first.RootResolverMiddleware,
				})
				want := `{"resources":{"totalCount":0,"nodes":[]}}`
				if a {
					want = `{"resources":{"totalCount":0}}`
				}
				if got := string(next(ctx).Data); got != want {
					t.Error(fmt.Sprint("a is ", a, ", b is ", b, ": got ", got, ", want ", want))
					return
				}
			}
		})
	}
	all.Wait()
}
