package engine_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/graph/engine/enginetest"
	"github.com/sluicegw/sluice/graph/stream"
)

// faultKey is where a context carries a fault.
type faultKey struct{}

// fault spoils a read of the store: the one after so many others.
type fault struct {
	after atomic.Int32
	spoil func() error
}

// faulty is a store whose reads fail as their context says.
type faulty struct{ backend.Store }

func (s faulty) meet(ctx context.Context) error {
	if f, ok := ctx.Value(faultKey{}).(*fault); ok && f.after.Add(-1) == -1 {
		return f.spoil()
	}
	return ctx.Err()
}

func (s faulty) Get(ctx context.Context, keys ...backend.Key) ([]*backend.Resource, error) {
	if err := s.meet(ctx); err != nil {
		return nil, err
	}
	return s.Store.Get(ctx, keys...)
}

func (s faulty) GetBare(ctx context.Context, keys ...backend.Key) ([]*backend.Resource, error) {
	if err := s.meet(ctx); err != nil {
		return nil, err
	}
	return backend.GetBare(ctx, s.Store, keys...)
}

func (s faulty) Ranges(ctx context.Context, rs []backend.Range) ([]backend.Page, error) {
	if err := s.meet(ctx); err != nil {
		return nil, err
	}
	return backend.Ranges(ctx, s.Store, rs)
}

// remembered are documents that were parsed, with their plans.
type remembered struct {
	g    *gateway
	mu   sync.Mutex // guards docs
	docs map[string]*ast.QueryDocument
}

func (r *remembered) Get(_ context.Context, query string) (*ast.QueryDocument, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	doc, ok := r.docs[query]
	return doc, ok
}

func (r *remembered) Add(_ context.Context, query string, doc *ast.QueryDocument) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.docs[query] = doc
	r.g.engine.Keep(doc, func(int) {})
}

// answerIn executes an operation in memory that is used again.
func (g *gateway) answerIn(ctx context.Context, oc *graphql.OperationContext) (data string, clean bool) {
	var out stream.Output
	defer out.Release()
	next, ctx := g.exec.DispatchOperation(stream.WithOutput(ctx, &out), oc)
	res := next(ctx)
	if res == nil {
		return "", false
	}
	return string(res.Data), len(res.Errors) == 0
}

// TestRunsThatAreUsedAgainKeepApart executes queries side by side, of which some
// fail half way, and expects of all others what they are answered alone.
func TestRunsThatAreUsedAgainKeepApart(t *testing.T) {
	catalogue := shelves(t)
	for driver, open := range drivers {
		t.Run("over "+driver, func(t *testing.T) {
			g := gatewayOver(t, catalogue, func(t testing.TB, clock func() time.Time) backend.Store { return faulty{open(t, clock)} })
			g.exec.SetQueryCache(&remembered{g: g, docs: map[string]*ast.QueryDocument{}})
			g.exec.SetRecoverFunc(func(context.Context, any) error { return errors.New("a panic") })
			seed := setting(t, "SLUICE_TEST_SEED", rand.Uint64())
			t.Logf("SLUICE_TEST_SEED=%d", seed)
			rnd := rand.New(rand.NewPCG(seed, 0))
			values := newPool(rnd, catalogue)
			source := &enginetest.Source{Schema: g.engine.Schema(), Rand: rnd, Values: values.value, Skip: func(_, field string) bool {
				return slices.Contains([]string{"kinds", "dependencyTree", "updateKind", "reveal", "viewer", "access", "accessGrants", "unreadables"}, field)
			}}
			for range 150 {
				op := source.Next(ast.Mutation)
				if variables := decoded(t, op.Variables); op.Query != "" {
					if oc, errs := g.prepare(op.Query, variables); errs == nil {
						g.answerIn(t.Context(), oc)
					}
				}
			}
			type known struct {
				query     string
				variables map[string]any
				data      string
				clean     bool
			}
			var queries []known
			for len(queries) < 100 {
				op := source.Next(ast.Query)
				k := known{query: op.Query, variables: op.Variables}
				oc, errs := g.prepare(k.query, decoded(t, k.variables))
				if errs != nil {
					continue
				}
				k.data, k.clean = g.answerIn(t.Context(), oc)
				queries = append(queries, k)
			}
			var all sync.WaitGroup
			for n := range 4 {
				all.Go(func() {
					rnd := rand.New(rand.NewPCG(seed, uint64(n)+1))
					for range int(setting(t, "SLUICE_TEST_OPERATIONS", 400)) {
						k := &queries[rnd.IntN(len(queries))]
						oc, errs := g.prepare(k.query, decoded(t, k.variables))
						if errs != nil {
							t.Error(errs)
							return
						}
						ctx, cancel := context.WithCancel(t.Context())
						trouble := rnd.IntN(8)
						f := &fault{}
						f.after.Store(int32(rnd.IntN(4)))
						switch trouble {
						case 0:
							f.spoil = func() error { return errors.New("the store is gone") }
						case 1:
							f.spoil = func() error { cancel(); return context.Canceled }
						case 2:
							f.spoil = func() error { panic("a fault of the store") }
						}
						if f.spoil != nil {
							ctx = context.WithValue(ctx, faultKey{}, f)
						}
						data, clean := g.answerIn(ctx, oc)
						cancel()
						if (f.spoil == nil || f.after.Load() >= 0) && (data != k.data || clean != k.clean) {
							t.Errorf("%s\n%v\ngot  %s\nwant %s", k.query, k.variables, data, k.data)
							return
						}
					}
				})
			}
			all.Wait()
		})
	}
}
