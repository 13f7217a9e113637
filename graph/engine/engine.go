package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/query"
	"github.com/sluicegw/sluice/graph/answer"
	"github.com/sluicegw/sluice/graph/stream"
	"github.com/sluicegw/sluice/internal/span"
)

// Config of an engine.
type Config struct {
	// Service answers for all kinds. Required.
	Service *service.Service
	// Schema is the whole API as clients see it. Required.
	Schema *ast.Schema
	// Core executes introspection and the fields that are resolved by hand. Required.
	Core graphql.ExecutableSchema
	// LoaderWait is how long the first read of a hand-written resolver waits for
	// others, to read all in one call. Default 1 ms.
	LoaderWait time.Duration
	// BadTime is called with the kind of a resource for each stored time that is invalid, and is shown as null.
	// Default: none.
	BadTime func(kind string)
	// Deprecated is called with the schema coordinate of each deprecated field that a manifest or a patch in stored
	// form sets in an operation. Optional.
	Deprecated func(oc *graphql.OperationContext, coordinate string)
	// Streams is the set of all subscriptions. When it ends, they end with CATALOGUE_CHANGED. Default: it never ends.
	Streams *stream.Set
	// EveryKind is the set of the subscriptions for changes of every kind. Default: it never ends.
	EveryKind *stream.Set
	// Answers keeps the answers to queries. Default: none is kept.
	Answers *answer.Cache
	// Tracer traces deliveries of changes that were made by traced requests. Default: none are.
	Tracer *span.Tracer
}

// Engine is gqlgen's executable schema over kinds. It is safe for concurrent use.
type Engine struct {
	svc    *service.Service
	schema *ast.Schema
	core   graphql.ExecutableSchema
	wait   time.Duration
	// deprecated is Config.Deprecated.
	deprecated func(oc *graphql.OperationContext, coordinate string)
	// badTime is Config.BadTime.
	badTime func(kind string)
	// streams and everyKind are as in Config.
	streams, everyKind *stream.Set
	types              map[string]*typeInfo
	derived            map[role]fieldTable
	roots              map[fieldName]rootField
	// enums are the stored forms of enum values, by type and name.
	enums map[string]map[string]string
	// storedNames are the stored names of fields of inputs that have another name in the API.
	storedNames map[fieldName]string
	plans       plans
	// answers and tracer are as in Config.
	answers *answer.Cache
	tracer  *span.Tracer
	// spare are runs for reuse.
	spare sync.Pool
}

var _ graphql.ExecutableSchema = (*Engine)(nil)

// New returns an engine for the kinds of a service.
func New(cfg Config) (*Engine, error) {
	if cfg.Service == nil || cfg.Schema == nil || cfg.Core == nil {
		return nil, errors.New("engine: config: Service, Schema and Core are needed")
	}
	e := &Engine{
		svc: cfg.Service, schema: cfg.Schema, core: cfg.Core, wait: cfg.LoaderWait, badTime: cfg.BadTime,
		deprecated: cfg.Deprecated, answers: cfg.Answers, tracer: cfg.Tracer,
		streams: cmp.Or(cfg.Streams, stream.NewSet()), everyKind: cmp.Or(cfg.EveryKind, stream.NewSet()),
	}
	if e.badTime == nil {
		e.badTime = func(string) {}
	}
	if err := e.readKinds(); err != nil {
		return nil, fmt.Errorf("engine: %w", err)
	}
	return e, nil
}

// Schema implements [graphql.ExecutableSchema].
func (e *Engine) Schema() *ast.Schema { return e.schema }

// Complexity implements [graphql.ExecutableSchema]. It sets no limits; package server
// does.
func (e *Engine) Complexity(context.Context, string, string, int, map[string]any) (int, bool) {
	return 0, false
}

// Subject returns the name of the kind of the first root field of a valid operation, and the verb that the field asks
// for. The kind is empty if the field belongs to no kind, or to all; the verb is empty if the field has none.
func (e *Engine) Subject(op *ast.OperationDefinition) (kind string, verb descriptor.Verb) {
	fields := slices.Collect(selectedFields(op.SelectionSet))
	root := e.roots[fieldName{e.rootType(op.Operation).Name, fields[0].Name}]
	if root.kind != nil {
		kind = root.kind.Name
	}
	return kind, root.verb
}

// Exec implements [graphql.ExecutableSchema].
func (e *Engine) Exec(ctx context.Context) graphql.ResponseHandler {
	oc := graphql.GetOperationContext(ctx)
	p, err := e.plan(oc)
	if err != nil {
		return graphql.OneShot(graphql.ErrorResponse(ctx, "%v", err))
	}
	if oc.Operation.Operation == ast.Subscription {
		return graphql.OneShot(graphql.ErrorResponse(ctx, "a subscription begins with Subscribe"))
	}
	done := false
	return func(ctx context.Context) *graphql.Response {
		if done {
			return nil
		}
		done = true
		return e.respond(ctx, oc, p)
	}
}

// respond answers a query or a mutation.
func (e *Engine) respond(ctx context.Context, oc *graphql.OperationContext, p *plan) *graphql.Response {
	ctx, snapshot := query.WithSnapshot(ctx)
	output := stream.OutputOf(ctx)
	if output == nil || !e.keeps(ctx, oc, p) {
		res := e.execute(ctx, e.begin(oc, p, snapshot), output)
		e.countNotKept(ctx, oc)
		return res
	}
	a := &answering{engine: e, plan: p, snapshot: snapshot}
	if kept := a.find(ctx, oc); kept != nil {
		oc.Stats.SetExtension(KeptExtension, true)
		output.FillKept(kept)
		return &graphql.Response{Data: output.Data()}
	}
	ended := false
	defer func() {
		if !ended { // it panics
			a.end(ctx, nil)
		}
	}()
	res := e.execute(ctx, e.begin(oc, p, snapshot), output)
	var body []byte
	if graphql.GetErrors(ctx) == nil {
		body = output.Filled()
	}
	ended = true
	a.end(ctx, body)
	return res
}

// execute executes a query or a mutation. After a panic, and after a query has halted, the answer has no data: see
// [halted].
func (e *Engine) execute(ctx context.Context, r *run, output *stream.Output) (res *graphql.Response) {
	defer func() {
		v := recover()
		if v == nil {
			return
		}
		// After a panic the run cannot be reused.
		if h, ok := v.(*halted); ok {
			r.spent.budget.Halt()
			graphql.AddError(ctx, h.err)
		} else {
			graphql.AddError(ctx, r.oc.Recover(ctx, v))
		}
		res = &graphql.Response{Data: []byte("null")}
	}()
	if output == nil {
		data := r.execute(ctx, nil)
		e.end(r, nil)
		return &graphql.Response{Data: data}
	}
	buf := r.execute(ctx, append(r.buf[:0], output.Head...))
	output.Fill(append(buf, output.Tail...), r)
	return &graphql.Response{Data: output.Data()}
}
