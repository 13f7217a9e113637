package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/executor"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/bolt"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/redis"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/graph/coercion"
	"github.com/sluicegw/sluice/graph/engine"
	"github.com/sluicegw/sluice/graph/engine/enginetest"
	"github.com/sluicegw/sluice/graph/kinds"
	"github.com/sluicegw/sluice/graph/stream"
	"github.com/sluicegw/sluice/internal/redistest"
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
	// caller asks what do asks.
	caller access.Caller
	// badTimes are those that were told, by kind.
	badTimes map[string]int
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
	var inner *memory.Store
	g := gatewayOver(t, catalogue, func(t testing.TB, clock func() time.Time) backend.Store {
		var err error
		if inner, err = memory.Open(memory.Config{Rand: seeded(), Clock: clock}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = inner.Close() })
		if wrap != nil {
			return wrap(inner)
		}
		return inner
	})
	g.store = inner
	return g
}

// seeded is what makes the epochs of a store.
func seeded() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

// drivers open empty stores whose revisions are the same.
var drivers = map[string]func(testing.TB, func() time.Time) backend.Store{
	"memory": func(t testing.TB, clock func() time.Time) backend.Store {
		s, err := memory.Open(memory.Config{Rand: seeded(), Clock: clock})
		return opened(t, s, err)
	},
	"bolt": func(t testing.TB, clock func() time.Time) backend.Store {
		s, err := bolt.Open(bolt.Config{Path: filepath.Join(t.TempDir(), "sluice.db"), Rand: seeded(), Clock: clock})
		return opened(t, s, err)
	},
	"redis": func(t testing.TB, clock func() time.Time) backend.Store {
		s, err := redis.Open(t.Context(), redis.Config{URL: server.Server(t).URL(), Prefix: redistest.Prefix(), Rand: seeded(), Clock: clock})
		return opened(t, s, err)
	},
}

// server is for all tests of the package.
var server redistest.Shared

// opened closes a store at the end of the test.
func opened(t testing.TB, s interface {
	backend.Store
	Close() error
}, err error) backend.Store {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// gatewayOver is a gateway over a store that open opens.
func gatewayOver(t testing.TB, catalogue *kinds.Schema, open func(testing.TB, func() time.Time) backend.Store, with ...func(*service.Config)) *gateway {
	t.Helper()
	g := &gateway{t: t, now: time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC)}
	store := open(t, func() time.Time { return g.now })
	var err error
	var ids atomic.Int64
	cfg := service.Config{Kinds: catalogue.Descriptors(), Store: store, NewID: func() string { return fmt.Sprint("id-", ids.Add(1)) }}
	for _, change := range with {
		change(&cfg)
	}
	g.svc, err = service.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	g.badTimes = map[string]int{}
	g.engine = enginetest.New(t, catalogue, g.svc, func(cfg *engine.Config) { cfg.BadTime = func(kind string) { g.badTimes[kind]++ } })
	g.exec = executor.New(g.engine)
	return g
}

// answer is what an operation is answered.
type answer struct {
	Data   json.RawMessage `json:"data"`
	Errors gqlerror.List   `json:"errors,omitempty"`
}

// prepare parses and validates an operation, and coerces its variables as the server does.
func (g *gateway) prepare(query string, variables map[string]any) (*graphql.OperationContext, gqlerror.List) {
	ctx := graphql.StartOperationTrace(context.Background())
	raw, err := json.Marshal(variables)
	if err != nil {
		g.t.Fatal(err)
	}
	oc, errs := g.exec.CreateOperationContext(ctx, &graphql.RawParams{Query: query, Variables: variables})
	if errs != nil {
		return oc, errs
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var given map[string]any
	if err := dec.Decode(&given); err != nil {
		g.t.Fatal(err)
	}
	coercer := coercion.Coercer{Schema: g.engine.Schema()}
	doc, errs := coercer.Document(oc.Doc)
	if errs != nil {
		return nil, errs
	}
	var refused *gqlerror.Error
	if oc.Variables, refused = coercer.Variables(oc.Operation, given); refused == nil {
		refused = doc.Check(oc.Operation, oc.Variables)
	}
	if refused != nil {
		return nil, gqlerror.List{refused}
	}
	return oc, nil
}

// do executes an operation.
func (g *gateway) do(query string, variables map[string]any) answer {
	g.t.Helper()
	oc, errs := g.prepare(query, variables)
	if errs != nil {
		g.t.Fatalf("%s\n%v", query, errs)
	}
	next, ctx := g.exec.DispatchOperation(access.WithCaller(context.Background(), g.caller), oc)
	res := next(ctx)
	return answer{Data: append(json.RawMessage(nil), res.Data...), Errors: res.Errors}
}

// first is the first answer of an operation of any kind.
func (g *gateway) first(query string, variables map[string]any) answer {
	g.t.Helper()
	oc, errs := g.prepare(query, variables)
	if errs != nil {
		g.t.Fatalf("%s\n%v", query, errs)
	}
	ctx, cancel := context.WithCancel(graphql.WithOperationContext(context.Background(), oc))
	defer cancel()
	if oc.Operation.Operation == ast.Subscription {
		a := subscribe(ctx, g.engine, oc)()
		if a.Response == nil {
			return answer{Errors: a.Errors}
		}
		return answer{Data: append(json.RawMessage(nil), a.Response.Data...), Errors: a.Response.Errors}
	}
	next, ctx := g.exec.DispatchOperation(ctx, oc)
	res := next(ctx)
	return answer{Data: append(json.RawMessage(nil), res.Data...), Errors: res.Errors}
}

// subscribe begins a subscription, and returns what waits for its next answer.
func subscribe(ctx context.Context, e *engine.Engine, oc *graphql.OperationContext) (next func() stream.Answer) {
	ctx = graphql.WithOperationContext(ctx, oc)
	responding := func() context.Context {
		return graphql.WithResponseContext(ctx, graphql.DefaultErrorPresenter, graphql.DefaultRecover)
	}
	beginning := responding()
	events := e.Subscribe(beginning, "")
	if errs := graphql.GetErrors(beginning); events == nil || errs != nil {
		return func() stream.Answer { return stream.Answer{Errors: errs} }
	}
	return func() stream.Answer {
		ctx := responding()
		answer := events.Next(ctx)
		if answer.Response != nil {
			answer.Response.Errors = append(answer.Response.Errors, graphql.GetErrors(ctx)...)
		}
		return answer
	}
}

// events are the first answers of a stream.
func (g *gateway) events(query string, variables map[string]any, n int) (out []string) {
	g.t.Helper()
	oc, errs := g.prepare(query, variables)
	if errs != nil {
		g.t.Fatalf("%s\n%v", query, errs)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	next := subscribe(ctx, g.engine, oc)
	for range n {
		a := next()
		if a.Response == nil || len(a.Response.Errors) > 0 {
			g.t.Fatalf("%s: after %v: %+v", query, out, a)
		}
		out = append(out, string(a.Response.Data))
	}
	return out
}
