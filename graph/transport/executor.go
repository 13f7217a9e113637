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
	// Parse returns a valid document or all its errors. It stops when ctx ends.
	Parse(ctx context.Context, query string) (Document, gqlerror.List)
}

// Document is a valid document.
type Document interface {
	// Tree returns the syntax tree, which must not be modified.
	Tree() *ast.QueryDocument
	// Bind sets the coerced variables of an operation and validates what depends on
	// them. It may modify given.
	Bind(oc *graphql.OperationContext, given map[string]any) *gqlerror.Error
}

// Engine executes the operation of a context. It adds errors to the context.
type Engine interface {
	// Exec executes a query or a mutation.
	Exec(ctx context.Context) graphql.ResponseHandler
	// Subscribe starts a subscription; see Begin in [stream.Config]. It returns nil if it fails.
	Subscribe(ctx context.Context, after string) stream.Events
	// Lead starts a shared execution; see Lead in [stream.Config].
	Lead(ctx context.Context, first stream.Execution) stream.Execution
}

// ExecutorConfig configures an executor. All fields but Answered and Memory are
// required.
type ExecutorConfig struct {
	// Engine executes operations.
	Engine Engine
	// Named has the documents that clients name instead of sending them.
	Named *NamedDocuments
	// Documents parses documents.
	Documents Documents
	// Accounts gives each answer a budget.
	Accounts stream.Accounts
	// Present returns an error in the form for clients.
	Present graphql.ErrorPresenterFunc
	// Recover logs a panic and returns its error.
	Recover graphql.RecoverFunc
	// Answered is called after each query or mutation was answered, when a subscription starts, and
	// for each refused request with a nil op. Default: no call.
	Answered func(ctx context.Context, op *graphql.OperationContext, errs gqlerror.List)
	// Memory bounds the memory of all requests and answers in progress. Default:
	// unbounded.
	Memory *budget.Memory
}

// Executor runs the operations of one version of the API. It replaces gqlgen's executor: the
// gateway uses none of its extensions, and its cost for an operation is as high as that of a read
// from memory.
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

// Operation is a parsed and valid request.
type Operation struct {
	executor *Executor
	context  graphql.OperationContext
	// end is the deadline of a query or mutation; zero means none.
	end time.Time
}

// Prepare parses and validates a request until the deadline of ctx. If it returns errors, they are
// the answer.
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

// resolve and resolveRoot call the resolver. Fields have no middleware.
func resolve(ctx context.Context, next graphql.Resolver) (any, error) { return next(ctx) }

func resolveRoot(ctx context.Context, next graphql.RootResolver) graphql.Marshaler { return next(ctx) }

// execute executes a query or a mutation. It returns nil if ctx has ended before.
func (e *Executor) execute(ctx context.Context, oc *graphql.OperationContext) *graphql.Response {
	ctx = graphql.WithOperationContext(ctx, oc)
	beginning := e.responder.Context(ctx)
	response := e.cfg.Engine.Exec(beginning)
	if errs := graphql.GetErrors(beginning); errs != nil {
		return &graphql.Response{Errors: errs}
	}
	return e.responder.Respond(ctx, response)
}

// begin starts a subscription; see Begin in [stream.Config].
func (e *Executor) begin(ctx context.Context, after string) (stream.Events, gqlerror.List) {
	ctx = e.responder.Context(ctx)
	events := e.cfg.Engine.Subscribe(ctx, after)
	return events, graphql.GetErrors(ctx)
}

// recovered returns the errors that a client gets after a panic.
func (e *Executor) recovered(ctx context.Context, v any) gqlerror.List {
	return gqlerror.List{e.cfg.Present(ctx, e.cfg.Recover(ctx, v))}
}

// Refuse returns the answer to a request that is not executed.
func (e *Executor) Refuse(ctx context.Context, errs ...*gqlerror.Error) []byte {
	return stream.Encode(&graphql.Response{Errors: e.Present(ctx, errs)})
}

// subscribe returns a subscription; see [stream.Groups.Subscribe].
func (o *Operation) subscribe(ctx context.Context, after string, q *stream.Queue, w stream.Wire) *stream.Subscription {
	o.executor.cfg.Answered(ctx, &o.context, nil)
	return o.executor.subscriptions.Subscribe(ctx, &o.context, after, q, w)
}

// isSubscription reports whether the operation is a subscription.
func (o *Operation) isSubscription() bool { return o.kind() == ast.Subscription }

func (o *Operation) kind() ast.Operation { return o.context.Operation.Operation }

// answer calls put with the answer to a query or a mutation. The answer holds its memory until it
// was sent. abort disconnects the client; see [budget.Share.Keep].
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

// Text before and after the data of an answer without errors.
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
	// storable reports whether the client may cache the answer: it has data, and no errors,
	// extensions or secrets.
	storable bool
	// kept is the cached answer; nil if the operation was executed.
	kept *answer.Kept
}

// tag returns the entity tag of the answer, without quotes.
func (r *response) tag() string {
	if r.kept != nil {
		return r.kept.Tag()
	}
	return answer.Tag(r.body)
}

// do runs a query or a mutation until the deadline of Prepare. It passes the answer to send. The
// memory of an answer that is not cached is reused after send has returned. abort disconnects the
// client; see [budget.Share.Keep]. The returned share holds the memory of the answer; the caller
// closes it.
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
