package transport

import (
	"bytes"
	"context"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/errcode"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/graph/answer"
	"github.com/sluicegw/sluice/graph/stream"
)

// Documents parses and validates documents within limits.
type Documents interface {
	// Parse returns the document, or all its errors if it is not valid. It stops when ctx ends.
	Parse(ctx context.Context, query string) (Document, gqlerror.List)
}

// Document is a valid document.
type Document interface {
	// Tree returns the syntax tree, which must not be modified.
	Tree() *ast.QueryDocument
	// Bind sets the coerced variables of an operation, and validates what depends on their values. given may be
	// modified.
	Bind(oc *graphql.OperationContext, given map[string]any) *gqlerror.Error
}

// Engine executes the operation in a context. It adds errors to the context.
type Engine interface {
	// Exec executes a query or a mutation.
	Exec(ctx context.Context) graphql.ResponseHandler
	// Subscribe begins a subscription as described at [stream.Config].Begin. If that is not possible, it returns nil.
	Subscribe(ctx context.Context, after string) stream.Events
	// Lead begins a shared execution as described at [stream.Config].Lead.
	Lead(ctx context.Context, first stream.Execution) stream.Execution
}

// ExecutorConfig configures an [Executor]. All fields but Answered and Memory are required.
type ExecutorConfig struct {
	// Engine executes operations.
	Engine Engine
	// Named are the documents that clients can name instead of sending them.
	Named *NamedDocuments
	// Documents parses and validates documents.
	Documents Documents
	// Accounts gives each answer a budget.
	Accounts stream.Accounts
	// Present returns the form of an error for clients.
	Present graphql.ErrorPresenterFunc
	// Recover logs a panic and returns its error.
	Recover graphql.RecoverFunc
	// Answered is called after a query or mutation, when a subscription begins, and for a refused request, with a nil
	// op. Default: no call.
	Answered func(ctx context.Context, op *graphql.OperationContext, errs gqlerror.List)
	// Memory is the memory that all requests and answers share. Default: unbounded.
	Memory *budget.Memory
}

// Executor executes the operations of one version of the API. It replaces gqlgen's executor, which would take as much
// time for an operation as reading its resources from memory. The gateway needs none of the extensions of that
// executor.
type Executor struct {
	cfg           ExecutorConfig
	responder     stream.Responder
	subscriptions *stream.Groups
}

// NewExecutor returns an executor. It starts nothing.
func NewExecutor(cfg ExecutorConfig) *Executor {
	if cfg.Answered == nil {
		cfg.Answered = func(context.Context, *graphql.OperationContext, gqlerror.List) {}
	}
	e := &Executor{
		cfg:       cfg,
		responder: stream.Responder{Accounts: cfg.Accounts, Present: cfg.Present, Recover: cfg.Recover},
	}
	e.subscriptions = stream.NewGroups(stream.Config{
		Begin:     e.begin,
		Lead:      cfg.Engine.Lead,
		Responder: e.responder,
		Memory:    cfg.Memory,
		Recover:   e.recovered,
		Refuse: func(ctx context.Context) gqlerror.List {
			return e.Present(ctx, gqlerror.List{overBudget(cfg.Memory)})
		},
	})
	return e
}

// Operation is a request that was parsed and validated.
type Operation struct {
	executor *Executor
	context  graphql.OperationContext
	// end is the deadline of a query or mutation; zero if there is none.
	end time.Time
}

// Prepare parses and validates a request, within the deadline of ctx. If it returns errors, they are the answer to the
// request.
func (e *Executor) Prepare(ctx context.Context, r *Request) (*Operation, gqlerror.List) {
	begin := time.Now()
	named, err := e.cfg.Named.Resolve(r)
	if err != nil {
		return nil, gqlerror.List{err}
	}
	doc, errs := e.cfg.Documents.Parse(ctx, named.Query)
	if len(errs) > 0 {
		return nil, errs
	}
	op := &Operation{executor: e, context: graphql.OperationContext{
		Doc:                    doc.Tree(),
		Operation:              doc.Tree().Operations.ForName(r.OperationName),
		OperationName:          r.OperationName,
		RawQuery:               named.Query,
		Extensions:             r.Extensions,
		RecoverFunc:            e.cfg.Recover,
		ResolverMiddleware:     resolve,
		RootResolverMiddleware: resolveRoot,
		Stats: graphql.Stats{
			OperationStart: begin,
			Read:           graphql.TraceTiming{Start: begin, End: begin},
		},
	}}
	op.end, _ = ctx.Deadline()
	if op.context.Operation == nil {
		err := gqlerror.Errorf("operation %s not found", r.OperationName)
		if r.OperationName == "" {
			err.Message = "the document has several operations; operationName must say which"
		}
		errcode.Set(err, errcode.ValidationFailed)
		return nil, gqlerror.List{err}
	}
	if err := doc.Bind(&op.context, r.Variables); err != nil {
		return nil, gqlerror.List{err}
	}
	e.cfg.Named.Remember(named)
	return op, nil
}

// resolve and resolveRoot are field middleware that only calls the resolver.
func resolve(ctx context.Context, next graphql.Resolver) (any, error) { return next(ctx) }

func resolveRoot(ctx context.Context, next graphql.RootResolver) graphql.Marshaler { return next(ctx) }

// execute executes a query or mutation. It returns nil if ctx has already ended.
func (e *Executor) execute(ctx context.Context, oc *graphql.OperationContext) *graphql.Response {
	ctx = graphql.WithOperationContext(ctx, oc)
	beginning := e.responder.Context(ctx)
	response := e.cfg.Engine.Exec(beginning)
	if errs := graphql.GetErrors(beginning); errs != nil {
		return &graphql.Response{Errors: errs}
	}
	return e.responder.Respond(ctx, response)
}

// begin begins a subscription as described at [stream.Config].Begin.
func (e *Executor) begin(ctx context.Context, after string) (stream.Events, gqlerror.List) {
	ctx = e.responder.Context(ctx)
	events := e.cfg.Engine.Subscribe(ctx, after)
	return events, graphql.GetErrors(ctx)
}

// recovered returns the errors for the client after a panic.
func (e *Executor) recovered(ctx context.Context, v any) gqlerror.List {
	return gqlerror.List{e.cfg.Present(ctx, e.cfg.Recover(ctx, v))}
}

// Refuse returns the answer to a request that is not executed because of errs.
func (e *Executor) Refuse(ctx context.Context, errs ...*gqlerror.Error) []byte {
	return stream.Encode(&graphql.Response{Errors: e.Present(ctx, errs)})
}

// subscribe returns the subscription of the operation: see [stream.Groups.Subscribe].
func (o *Operation) subscribe(ctx context.Context, after string, q *stream.Queue, w stream.Wire) *stream.Subscription {
	o.executor.cfg.Answered(ctx, &o.context, nil)
	return o.executor.subscriptions.Subscribe(ctx, &o.context, after, q, w)
}

// isSubscription reports whether the operation is a subscription.
func (o *Operation) isSubscription() bool { return o.kind() == ast.Subscription }

func (o *Operation) kind() ast.Operation { return o.context.Operation.Operation }

// answer executes a query or mutation and calls put with the answer. The memory of the answer is held until the frame
// is released. abort disconnects the client; see [budget.Share.Keep].
func (o *Operation) answer(ctx context.Context, w stream.Wire, abort func(), put func(next stream.Frame)) {
	defer w.Close()
	defer func() {
		if v := recover(); v != nil {
			w.End(ctx, o.executor.recovered(ctx, v))
		}
	}()
	var next stream.Frame
	share := o.do(ctx, abort, func(r response) {
		body := r.body
		if r.kept == nil { // its memory is used again
			body = bytes.Clone(body)
		}
		next = w.Frame(body, "")
	})
	next.Release = share.Close
	put(next)
}

// The bytes before and after the data of an answer without errors.
const (
	dataHead = `{"data":`
	dataTail = `}`
)

// response is the answer to a query or a mutation.
type response struct {
	// body is the answer as JSON.
	body []byte
	// busy reports whether the operation was refused because there is no memory.
	busy bool
	// storable reports whether the client may cache the answer: it has data and neither errors, extensions nor secrets.
	storable bool
	// kept is the kept answer that was used; nil if the operation was executed.
	kept *answer.Kept
}

// tag returns the entity tag of the answer, without quotes.
func (r *response) tag() string {
	if r.kept != nil {
		return r.kept.Tag()
	}
	return answer.Tag(r.body)
}

// do executes a query or mutation and passes the answer to send. The deadline that Prepare has set applies. After send
// has returned, the memory of the answer may be used again, unless it is a kept answer. abort disconnects the client;
// see [budget.Share.Keep]. The share that do returns holds the memory of the answer; the caller must close it.
func (o *Operation) do(ctx context.Context, abort func(), send func(response)) *budget.Share {
	share, err := o.executor.cfg.Memory.Begin(ctx)
	if err != nil {
		send(response{body: o.executor.Refuse(ctx, overBudget(o.executor.cfg.Memory)), busy: true})
		return nil
	}
	done := false
	defer func() {
		if !done { // it panics
			share.Close()
		}
	}()
	if end, ok := ctx.Deadline(); !o.end.IsZero() && (!ok || end.After(o.end)) {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, o.end)
		defer cancel()
	}
	output := stream.Output{Head: dataHead, Tail: dataTail}
	defer output.Release()
	res := o.executor.execute(
		stream.WithOutput(budget.WithShared(ctx, budget.Shared{Memory: share}), &output), &o.context,
	)
	switch whole := output.Filled(); {
	case res == nil: // ctx ended before the operation began
		send(response{body: o.executor.Refuse(ctx, refusal(failure.CodeTimeout, "the request was cancelled"))})
	case whole != nil && len(res.Errors) == 0 && len(res.Extensions) == 0:
		share.Keep(int64(cap(whole)), abort)
		send(response{body: whole, storable: !output.Secret(), kept: output.Kept()})
	default:
		out := stream.Encode(res)
		share.Keep(int64(cap(whole)+len(out)), abort)
		send(response{body: out, busy: share.Refused() && o.kind() == ast.Query})
	}
	if res != nil {
		o.executor.cfg.Answered(ctx, &o.context, res.Errors)
	}
	done = true
	return share
}
