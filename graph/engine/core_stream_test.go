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
	calls  int
}

func (c *ticking) Schema() *ast.Schema { return c.schema }

func (c *ticking) Exec(context.Context) graphql.ResponseHandler {
	return func(context.Context) *graphql.Response {
		c.calls++
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
	next := func(query string) stream.Answer {
		oc, errs := g.prepare(query, nil)
		if errs != nil {
			t.Fatal(errs)
		}
		return subscribe(budget.With(t.Context(), budget.New(budget.Limits{budget.Bytes: 1 << 20})), e, oc)()
	}
	if res := next(`subscription { ticks { short: name } }`).Response; res == nil || string(res.Data) != `{"ticks":[]}` || c.calls != 1 {
		t.Fatalf("%+v, asked %d times", res, c.calls)
	}
	a := next(`subscription { ticks { ` + strings.Repeat("n", 2000) + `: name } }`)
	if a.Response != nil || c.calls != 1 || len(a.Errors) != 1 || !strings.Contains(a.Errors[0].Message, "limit-answer") {
		t.Errorf("%+v, asked %d times", a, c.calls)
	}
}
