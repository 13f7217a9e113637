package transport

import (
	"bytes"
	"context"
	"strings"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/executor"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/graph/document"
	"github.com/sluicegw/sluice/graph/stream"
)

// Documents parses and validates the text of documents within the limits of the gateway.
type Documents interface {
	// Parse returns a valid document, or why the text is none. It ends when ctx ends.
	Parse(ctx context.Context, query string) (*ast.QueryDocument, gqlerror.List)
}

// ExecutorConfig of an executor.
type ExecutorConfig struct {
	// Executor is gqlgen's, with presenter and middleware. Required.
	Executor *executor.Executor
	// Named are the documents that clients name instead of sending them. Required.
	Named *document.Store
	// Documents parses the documents; the query cache of Executor must ask
	// [DocumentOf] then. Default: Executor parses them, without limits.
	Documents Documents
	// Direct executes queries and mutations instead of Executor. Default: Executor does.
	Direct *Direct
	// Memory is what all that is in flight holds. Default: unbounded.
	Memory *budget.Memory
}

// Executor runs the operations of one version of the API. Everything that a
// transport does goes through it.
type Executor struct {
	exec   *executor.Executor
	named  *document.Store
	parser Documents
	direct *Direct
	memory *budget.Memory
	// subscriptions are those that run.
	subscriptions *stream.Groups
}

// NewExecutor wraps gqlgen's executor.
func NewExecutor(cfg ExecutorConfig) *Executor {
	e := &Executor{exec: cfg.Executor, named: cfg.Named, parser: cfg.Documents, direct: cfg.Direct, memory: cfg.Memory}
	e.subscriptions = stream.NewGroups(stream.Config{Dispatch: cfg.Executor.DispatchOperation, Memory: cfg.Memory, Refuse: func(ctx context.Context) gqlerror.List {
		return e.Present(ctx, gqlerror.List{overBudget(cfg.Memory)})
	}})
	return e
}

type documentKey struct{}

// DocumentOf returns the parsed document of the request that ctx belongs to.
// gqlgen's executor would parse and validate it again, without limits.
func DocumentOf(ctx context.Context) (*ast.QueryDocument, bool) {
	doc, ok := ctx.Value(documentKey{}).(*ast.QueryDocument)
	return doc, ok
}

// Operation is a request that is parsed, valid and ready to run.
type Operation struct {
	executor *Executor
	context  *graphql.OperationContext
	// end is when a query or mutation must have ended; zero is never.
	end time.Time
	// own is context, unless gqlgen has made that.
	own graphql.OperationContext
}

// Prepare parses and checks a request, in the time that ctx has. The errors are
// those of a request that is not executed at all: they go to the client without data.
func (e *Executor) Prepare(ctx context.Context, r *Request) (*Operation, gqlerror.List) {
	id, err := e.named.Resolve(&document.Request{Query: r.Query, DocumentID: r.DocumentID, Extensions: r.Extensions})
	if err != nil {
		return nil, gqlerror.List{err}
	}
	end, _ := ctx.Deadline()
	op := &Operation{executor: e, end: end}
	if errs := e.prepare(ctx, op, id.Query, r); len(errs) > 0 {
		return nil, errs
	}
	e.named.Remember(id)
	return op, nil
}

// prepare finds the document of a request, and the operation in it.
func (e *Executor) prepare(ctx context.Context, op *Operation, query string, r *Request) gqlerror.List {
	now := time.Now()
	if e.parser != nil {
		doc, errs := e.parser.Parse(ctx, query)
		if len(errs) > 0 {
			return errs
		}
		if definition := e.direct.operation(doc, r.OperationName); definition != nil {
			op.context = &op.own
			op.own.Operation, op.own.RawQuery, op.own.Stats = definition, query, began(now)
			if err := e.direct.prepare(op.context, doc, r); err != nil {
				return withoutValues(gqlerror.List{err})
			}
			return nil
		}
		ctx = context.WithValue(ctx, documentKey{}, doc)
	}
	var errs gqlerror.List
	op.context, errs = e.exec.CreateOperationContext(graphql.StartOperationTrace(ctx), &graphql.RawParams{
		Query: query, OperationName: r.OperationName, Variables: r.Variables, Extensions: r.Extensions,
		ReadTime: graphql.TraceTiming{Start: now, End: now},
	})
	if len(errs) > 0 && r.OperationName == "" && op.context.Doc != nil && len(op.context.Doc.Operations) > 1 {
		errs[0].Message = "the document has several operations; operationName must say which"
	}
	return withoutValues(errs)
}

// notValid is what gqlparser says of a variable whose value is none of an enum.
const notValid = " is not a valid "

// withoutValues takes values of variables out of what is wrong with them: which
// variable it is stands in the path, and what is sent may be a secret.
func withoutValues(errs gqlerror.List) gqlerror.List {
	for _, err := range errs {
		if _, name, ok := lastCut(err.Message, notValid); ok && len(err.Path) > 0 {
			err.Message = "the value is not one of " + name
		}
	}
	return errs
}

// lastCut cuts a text around the last separator.
func lastCut(text, separator string) (before, after string, found bool) {
	if i := strings.LastIndex(text, separator); i >= 0 {
		return text[:i], text[i+len(separator):], true
	}
	return text, "", false
}

// Refuse is the answer to a request that is not executed.
func (e *Executor) Refuse(ctx context.Context, errs ...*gqlerror.Error) []byte {
	return stream.Encode(&graphql.Response{Errors: e.Present(ctx, errs)})
}

// Subscribe makes a subscription: see [stream.Groups.Subscribe].
func (o *Operation) Subscribe(ctx context.Context, after string, q *stream.Queue, w stream.Wire) *stream.Subscription {
	return o.executor.subscriptions.Subscribe(ctx, o.context, after, q, w)
}

// Kind is query, mutation or subscription.
func (o *Operation) Kind() ast.Operation { return o.context.Operation.Operation }

// answer puts the answer to a query or a mutation on a wire, where it holds memory until it was
// sent. abort cuts the client off: see [budget.Share.Keep].
func (o *Operation) answer(ctx context.Context, w stream.Wire, abort func(), put func(next stream.Frame)) {
	defer w.Close()
	defer func() {
		if v := recover(); v != nil {
			w.Panic(ctx, v)
		}
	}()
	var next stream.Frame
	share := o.do(ctx, abort, func(answer []byte, _ bool) { next = w.Frame(bytes.Clone(answer), "") })
	next.Release = share.Close
	put(next)
}

// What stands around the data of an answer without errors.
const (
	dataHead = `{"data":`
	dataTail = `}`
)

// Do runs a query or a mutation, in what is left of the time that Prepare had. It gives
// its answer as JSON to send, in memory that is used again after send returns. busy says
// that nothing was done for want of memory. abort cuts the client off: see [budget.Share.Keep].
func (o *Operation) Do(ctx context.Context, abort func(), send func(answer []byte, busy bool)) {
	o.do(ctx, abort, send).Close()
}

// do is Do. What the answer holds is left to the caller.
func (o *Operation) do(ctx context.Context, abort func(), send func(answer []byte, busy bool)) *budget.Share {
	share, err := o.executor.memory.Begin(ctx)
	if err != nil {
		send(o.executor.Refuse(ctx, overBudget(o.executor.memory)), true)
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
	run := running{Context: ctx, shared: budget.Shared{Memory: share}, memory: stream.Output{Head: dataHead, Room: len(dataTail)}}
	memory := &run.memory
	defer memory.Release()
	res := o.respond(&run)
	switch whole := memory.Filled(); {
	case res == nil: // ctx had ended before it began
		send(o.executor.Refuse(ctx, &gqlerror.Error{Message: "the request was cancelled", Extensions: map[string]any{"code": string(failure.CodeTimeout)}}), false)
	case whole != nil && len(res.Errors) == 0 && len(res.Extensions) == 0:
		share.Keep(int64(cap(whole)), abort)
		send(append(whole, dataTail...), false)
	default:
		out := stream.Encode(res)
		share.Keep(int64(cap(whole)+len(out)), abort)
		send(out, share.Refused() && o.Kind() == ast.Query)
	}
	done = true
	return share
}

// running is the context of a query or a mutation that is executed: one value for all
// that the transport adds to it.
type running struct {
	context.Context
	shared budget.Shared
	memory stream.Output
}

// Value is part of [context.Context].
func (r *running) Value(key any) any {
	switch key.(type) {
	case stream.OutputKey:
		return &r.memory
	case budget.SharedKey:
		return &r.shared
	}
	return r.Context.Value(key)
}

// respond executes a query or a mutation; nil if ctx had ended before.
func (o *Operation) respond(ctx context.Context) *graphql.Response {
	if direct := o.executor.direct; direct != nil {
		return direct.respond(ctx, o.context)
	}
	next, ctx := o.executor.exec.DispatchOperation(ctx, o.context)
	return next(ctx)
}
