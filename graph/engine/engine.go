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

// Config configures an [Engine].
type Config struct {
	// Service reads and writes resources. Required.
	Service *service.Service
	// Schema is the schema of the whole API. Required.
	Schema *ast.Schema
	// Core executes introspection and the fields with hand-written resolvers. Required.
	Core graphql.ExecutableSchema
	// LoaderWait is how long the first read of a hand-written resolver waits for other reads, to make one call for all.
	// Default 1 ms.
	LoaderWait time.Duration
	// BadTime is called with the name of a kind for each stored time that is not valid and is therefore shown as null.
	// Default: no call.
	BadTime func(kind string)
	// Deprecated is called with the schema coordinate of each deprecated field that an operation sets in a manifest or
	// in JSON. Default: no call.
	Deprecated func(oc *graphql.OperationContext, coordinate string)
	// Streams is the set that all subscriptions join. When the set ends, they end with CATALOGUE_CHANGED. Default: it
	// never ends.
	Streams *stream.Set
	// EveryKind is the set that subscriptions to changes of all kinds join in addition. Default: it never ends.
	EveryKind *stream.Set
	// Answers is the cache of answers to queries. Default: no answer is kept.
	Answers *answer.Cache
	// Tracer traces the delivery of changes that were made by traced requests. Default: no traces.
	Tracer *span.Tracer
}

// Engine executes operations over kinds. It implements [graphql.ExecutableSchema]. It is safe for concurrent use.
type Engine struct {
	svc    *service.Service
	schema *ast.Schema
	core   graphql.ExecutableSchema
	wait   time.Duration
	// deprecated is Config.Deprecated.
	deprecated func(oc *graphql.OperationContext, coordinate string)
	// badTime is Config.BadTime.
	badTime func(kind string)
	// streams and everyKind are Config.Streams and Config.EveryKind.
	streams, everyKind *stream.Set
	types              map[string]*typeInfo
	derived            map[role]fieldTable
	roots              map[fieldName]rootField
	// enums maps a type and the name of an enum value to its stored form.
	enums map[string]map[string]string
	// storedNames has the stored names of input fields whose API names differ.
	storedNames map[fieldName]string
	plans       plans
	// answers and tracer are Config.Answers and Config.Tracer.
	answers *answer.Cache
	tracer  *span.Tracer
	// spare has runs that can be used again.
	spare sync.Pool
}

var _ graphql.ExecutableSchema = (*Engine)(nil)

// New returns an engine for the kinds of cfg.Service.
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

// Complexity implements [graphql.ExecutableSchema]. There is no limit here; package server limits operations.
func (e *Engine) Complexity(context.Context, string, string, int, map[string]any) (int, bool) {
	return 0, false
}

// Subject returns the name of the kind that the first root field of a valid operation is about, and the verb that it
// needs. kind is empty if the field is about no kind or about all kinds. verb is empty if the field needs none.
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

// respond executes a query or a mutation, or returns a kept answer.
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

// execute executes a query or a mutation. If it panics, or if a query halts (see [halted]), the answer has no data.
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
