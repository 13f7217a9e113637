package engine_test

import (
	"context"
	"strings"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/executor"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/graph/engine"
	"github.com/sluicegw/sluice/graph/kinds"
	"github.com/sluicegw/sluice/graph/stream"
)

// ticking is a core with a subscription written by hand, which tells how often it was
// asked for an event.
type ticking struct {
	graphql.ExecutableSchema
	schema *ast.Schema
	asked  int
}

func (c *ticking) Schema() *ast.Schema { return c.schema }

func (c *ticking) Exec(context.Context) graphql.ResponseHandler {
	return func(context.Context) *graphql.Response {
		c.asked++
		return &graphql.Response{Data: []byte(`{"ticks":[]}`)}
	}
}

// TestLongNamesOfASubscriptionByHandAreRefused before its resolver writes them in each
// of many places, as those of queries are.
func TestLongNamesOfASubscriptionByHandAreRefused(t *testing.T) {
	catalogue, err := kinds.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	api, err := catalogue.API()
	if err != nil {
		t.Fatal(err)
	}
	kindType := api.Query.Fields.ForName("kinds").Type
	api.Subscription.Fields = append(api.Subscription.Fields, &ast.FieldDefinition{Name: "ticks", Type: kindType})
	c := &ticking{schema: api}
	g := newGateway(t, catalogue, nil)
	e, err := engine.New(engine.Config{Service: g.svc, Schema: api, Core: c})
	if err != nil {
		t.Fatal(err)
	}
	g.exec = executor.New(e)
	next := func(query string) (*graphql.Response, *stream.State) {
		oc, errs := g.prepare(query, nil)
		if errs != nil {
			t.Fatal(errs)
		}
		state := &stream.State{}
		ctx := budget.With(stream.With(t.Context(), state), budget.New(budget.Limits{budget.Bytes: 1 << 20}))
		handler, ctx := g.exec.DispatchOperation(ctx, oc)
		return handler(ctx), state
	}
	if res, _ := next(`subscription { ticks { short: name } }`); res == nil || string(res.Data) != `{"ticks":[]}` || c.asked != 1 {
		t.Fatalf("%+v, asked %d times", res, c.asked)
	}
	res, state := next(`subscription { ticks { ` + strings.Repeat("n", 2000) + `: name } }`)
	if res != nil || c.asked != 1 || len(state.Errors()) != 1 || !strings.Contains(state.Errors()[0].Message, "limit-answer") {
		t.Errorf("%+v, asked %d times, %v", res, c.asked, state.Errors())
	}
}
