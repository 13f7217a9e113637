package resolvers_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/executor"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/graph/loader"
	graph "github.com/sluicegw/sluice/graph/v1"
	"github.com/sluicegw/sluice/graph/v1/catalogue"
	resolvers "github.com/sluicegw/sluice/resolvers/v1"
)

// gateway executes operations in process.
type gateway struct {
	t      *testing.T
	exec   *executor.Executor
	schema graphql.ExecutableSchema
	store  *countingStore
	// decoded counts the resources that were decoded.
	decoded atomic.Int64
	// lookups and lists count the batched reads.
	lookups, lists atomic.Int64
}

// countingService counts the calls of each batched read.
type countingService struct {
	*service.Service
	g *gateway
}

func (s *countingService) Lookup(ctx context.Context, c service.Caller, keys []backend.Key) ([]*service.Resource, error) {
	s.g.lookups.Add(1)
	return s.Service.Lookup(ctx, c, keys)
}

func (s *countingService) ListMany(ctx context.Context, c service.Caller, reqs []service.ListRequest) ([]*service.Page, []error) {
	s.g.lists.Add(1)
	return s.Service.ListMany(ctx, c, reqs)
}

// countingStore counts the calls of each read.
type countingStore struct {
	backend.Store
	gets, ranges, counts, positions atomic.Int64
	// lag, if set, is closed to make every watcher fall behind.
	lag chan struct{}
}

// Watch returns a watcher that falls behind when it is told to.
func (s *countingStore) Watch(ctx context.Context, w backend.Watch) (backend.Watcher, error) {
	inner, err := s.Store.Watch(ctx, w)
	if err != nil || s.lag == nil {
		return inner, err
	}
	return &laggingWatcher{Watcher: inner, lag: s.lag}, nil
}

type laggingWatcher struct {
	backend.Watcher
	lag   chan struct{}
	begun bool
}

// Next delivers once, then waits for the signal and says LAGGED.
func (w *laggingWatcher) Next(ctx context.Context) (backend.Delivery, error) {
	if !w.begun {
		w.begun = true
		return w.Watcher.Next(ctx)
	}
	select {
	case <-w.lag:
		return backend.Delivery{}, &backend.LaggedError{Position: backend.NewPosition(backend.Revision{Epoch: 1, Seq: 2})}
	case <-ctx.Done():
		return backend.Delivery{}, ctx.Err()
	}
}

func (s *countingStore) Position(ctx context.Context) (backend.Position, error) {
	s.positions.Add(1)
	return s.Store.Position(ctx)
}

func (s *countingStore) Get(ctx context.Context, keys ...backend.Key) ([]*backend.Resource, error) {
	s.gets.Add(1)
	return s.Store.Get(ctx, keys...)
}

func (s *countingStore) Range(ctx context.Context, r backend.Range) (backend.Page, error) {
	if r.Count {
		s.counts.Add(1)
	} else {
		s.ranges.Add(1)
	}
	return s.Store.Range(ctx, r)
}

func open(t *testing.T) *gateway {
	t.Helper()
	store, err := memory.Open(memory.Config{})
	if err != nil {
		t.Fatal(err)
	}
	g := &gateway{t: t, store: &countingStore{Store: store}}
	kinds := catalogue.Kinds()
	for i := range kinds {
		decode := kinds[i].Decode
		kinds[i].Decode = func(r *backend.Resource) (backend.Object, error) {
			g.decoded.Add(1)
			return decode(r)
		}
	}
	svc, err := service.New(service.Config{Kinds: kinds, Store: g.store})
	if err != nil {
		t.Fatal(err)
	}
	g.schema = graph.NewExecutableSchema(graph.Config{Resolvers: resolvers.New(svc)})
	g.exec = executor.New(g.schema)
	g.exec.AroundResponses(func(ctx context.Context, next graphql.ResponseHandler) *graphql.Response {
		return next(loader.With(ctx, &countingService{svc, g}, service.Caller{}, 0))
	})
	return g
}

// answer is one response.
type answer struct {
	data   map[string]any
	errors gqlerror.List
}

// at walks into the data by names and indexes: "networks.edges.0.node.id".
func (a answer) at(path string) any {
	var v any = a.data
	for _, step := range strings.Split(path, ".") {
		switch w := v.(type) {
		case map[string]any:
			v = w[step]
		case []any:
			var i int
			if json.Unmarshal([]byte(step), &i) != nil || i >= len(w) {
				return nil
			}
			v = w[i]
		default:
			return nil
		}
	}
	return v
}

// start begins an operation and returns what gives its next response, nil at the end.
func (g *gateway) start(ctx context.Context, query string, variables map[string]any) func() *answer {
	g.t.Helper()
	ctx = graphql.StartOperationTrace(ctx)
	op, errs := g.exec.CreateOperationContext(ctx, &graphql.RawParams{Query: query, Variables: variables})
	if errs != nil {
		return func() *answer { return &answer{errors: errs} }
	}
	next, ctx := g.exec.DispatchOperation(ctx, op)
	return func() *answer {
		r := next(ctx)
		if r == nil {
			return nil
		}
		a := &answer{errors: r.Errors}
		if len(r.Data) > 0 {
			if err := json.Unmarshal(r.Data, &a.data); err != nil {
				g.t.Fatalf("response %s: %v", r.Data, err)
			}
		}
		return a
	}
}

// do executes a query or mutation.
func (g *gateway) do(query string, variables ...any) answer {
	g.t.Helper()
	return *g.start(g.t.Context(), query, pairs(variables))()
}

// must executes a query or mutation that has no errors.
func (g *gateway) must(query string, variables ...any) answer {
	g.t.Helper()
	a := g.do(query, variables...)
	if len(a.errors) > 0 {
		g.t.Fatalf("errors: %v", a.errors)
	}
	return a
}

func pairs(in []any) map[string]any {
	out := map[string]any{}
	for i := 0; i < len(in); i += 2 {
		out[in[i].(string)] = in[i+1]
	}
	return out
}

// code is the code of the n-th error.
func (a answer) code(n int) service.Code {
	if n >= len(a.errors) {
		return ""
	}
	if e, ok := a.errors[n].Err.(*service.Error); ok {
		return e.Code
	}
	return service.Code(a.errors[n].Message)
}

const credentials = `cloudCredentialsRef: {cloudName: "c", secretName: "s"}`

// create makes a minimal network.
func (g *gateway) create(namespace, name string) answer {
	g.t.Helper()
	return g.must(`mutation($ns: String, $name: String!) {
		createNetwork(input: {namespace: $ns, name: $name, spec: {`+credentials+`, resource: {}}}) { network { id metadata { revision } } }
	}`, "ns", namespace, "name", name)
}

// close closes the store under the gateway.
func (g *gateway) close() error { return g.store.Store.(interface{ Close() error }).Close() }
