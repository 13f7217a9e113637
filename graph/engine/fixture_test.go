package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/executor"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/graph/engine"
	"github.com/sluicegw/sluice/graph/engine/enginetest"
	"github.com/sluicegw/sluice/graph/kinds"
)

// gateway is an engine over a store of its own, whose clock and ids are the
// same in every run.
type gateway struct {
	t      testing.TB
	store  *memory.Store
	svc    *service.Service
	engine *engine.Engine
	exec   *executor.Executor
	now    time.Time
}

// shelves is a catalogue that uses every annotation.
func shelves(t testing.TB) *kinds.Schema {
	t.Helper()
	raw, err := os.ReadFile("../kinds/testdata/shelf.graphqls")
	if err != nil {
		t.Fatal(err)
	}
	catalogue, err := kinds.Load(&ast.Source{Name: "shelf.graphqls", Input: string(raw)})
	if err != nil {
		t.Fatal(err)
	}
	return catalogue
}

func newGateway(t testing.TB, catalogue *kinds.Schema, wrap func(backend.Store) backend.Store) *gateway {
	t.Helper()
	g := &gateway{t: t, now: time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC)}
	var err error
	if g.store, err = memory.Open(memory.Config{Rand: rand.New(rand.NewPCG(1, 2)), Clock: func() time.Time { return g.now }}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.store.Close() })
	var store backend.Store = g.store
	if wrap != nil {
		store = wrap(store)
	}
	n := 0
	g.svc, err = service.New(service.Config{Kinds: catalogue.Descriptors(), Store: store, NewID: func() string { n++; return fmt.Sprint("id-", n) }})
	if err != nil {
		t.Fatal(err)
	}
	g.engine = enginetest.New(t, catalogue, g.svc)
	g.exec = executor.New(g.engine)
	return g
}

// answer is what an operation is answered.
type answer struct {
	Data   json.RawMessage `json:"data"`
	Errors gqlerror.List   `json:"errors,omitempty"`
}

// prepare parses and validates an operation.
func (g *gateway) prepare(query string, variables map[string]any) (*graphql.OperationContext, gqlerror.List) {
	ctx := graphql.StartOperationTrace(context.Background())
	return g.exec.CreateOperationContext(ctx, &graphql.RawParams{Query: query, Variables: variables})
}

// do executes an operation.
func (g *gateway) do(query string, variables map[string]any) answer {
	g.t.Helper()
	oc, errs := g.prepare(query, variables)
	if errs != nil {
		g.t.Fatalf("%s\n%v", query, errs)
	}
	next, ctx := g.exec.DispatchOperation(context.Background(), oc)
	res := next(ctx)
	return answer{Data: append(json.RawMessage(nil), res.Data...), Errors: res.Errors}
}
