package engine

import (
	"context"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/change"
	"github.com/sluicegw/sluice/graph/stream"
	"github.com/sluicegw/sluice/internal/span"
)

// execution answers the changes of a subscription. A [stream.Loop] or a group passes the changes to it.
type execution struct {
	engine  *Engine
	oc      *graphql.OperationContext
	plan    *plan
	changes *change.Stream
	// run writes the answers; nil until it is needed.
	run *run
	// waiting is a context that ends with the stream, or earlier when the catalogue is replaced.
	waiting context.Context
	// everyKind reports whether the subscription is to changes of all kinds.
	everyKind bool
}

var _ stream.Execution = (*execution)(nil)

// Subscribe begins the subscription in ctx. It resumes from the cursor after or, if that is empty, from the argument in
// the document. If the subscription cannot begin, Subscribe adds errors to ctx and returns nil.
func (e *Engine) Subscribe(ctx context.Context, after string) stream.Events {
	oc := graphql.GetOperationContext(ctx)
	p, err := e.plan(oc)
	if err != nil {
		graphql.AddErrorf(ctx, "%v", err)
		return nil
	}
	f := &p.root.fields[0]
	if f.byCore {
		return e.subscribeCore(ctx, oc, p)
	}
	begin := &run{engine: e, oc: oc, plan: p}
	changes, req, err := begin.changes(ctx, f, after)
	if err != nil {
		begin.reportAll(ctx, err, f)
		return nil
	}
	s := &execution{engine: e, oc: oc, plan: p, changes: changes, everyKind: len(req.Kinds) == 0}
	s.waiting = join(span.Detach(ctx), false, changes.Close, e.sets(s.everyKind)...)
	cursor := ""
	if req.After != nil {
		cursor = *req.After
	}
	return stream.NewLoop(s, cursor)
}

// Changes implements [stream.Execution].
func (s *execution) Changes() *change.Stream { return s.changes }

// Waiting implements [stream.Execution].
func (s *execution) Waiting() context.Context { return s.waiting }

// field returns the root field of the subscription.
func (s *execution) field() *field { return &s.plan.root.fields[0] }

// answers returns the run with which answers are written.
func (s *execution) answers() *run {
	if s.run == nil {
		s.run = &run{engine: s.engine, oc: s.oc, plan: s.plan}
	}
	return s.run
}

// sets returns the sets that a subscription joins.
func (e *Engine) sets(everyKind bool) []*stream.Set {
	if everyKind {
		return []*stream.Set{e.streams, e.everyKind}
	}
	return []*stream.Set{e.streams}
}

// join returns a context that ends with ctx, or when one of the sets ends. When ctx ends, last is called unless it is
// nil. shared has the same meaning as in [stream.Set.Join].
func join(ctx context.Context, shared bool, last func(), sets ...*stream.Set) context.Context {
	waiting, interrupt := context.WithCancel(ctx)
	leave := make([]func(), 0, len(sets))
	for _, set := range sets {
		leave = append(leave, set.Join(interrupt, shared))
	}
	context.AfterFunc(ctx, func() {
		interrupt()
		for _, f := range leave {
			f()
		}
		if last != nil {
			last()
		}
	})
	return waiting
}

// changes opens the stream of changes that the arguments of a field request.
func (r *run) changes(
	ctx context.Context, f *field, after string,
) (changes *change.Stream, req change.Request, err error) {
	args, err := r.arguments(ctx, f)
	if err != nil {
		return nil, req, err
	}
	kinds := elementsOf[string](args, "kinds")
	if len(kinds) > maxKinds {
		return nil, req, tooLong("kinds", "maxItems", maxKinds, "elements")
	}
	req = change.Request{
		Namespace:  optional[string](args, "namespace"),
		Name:       optional[string](args, "name"),
		Filter:     args["filter"],
		FieldNames: f.fieldNames(),
		After:      optional[string](args, "after"),
		Snapshot:   value[bool](args, "snapshot"),
		Kinds:      kinds,
	}
	if after != "" {
		req.After = &after
	}
	if f.kind != nil {
		req.Kinds = []string{f.kind.Name}
	}
	if args["id"] != nil {
		if err := r.followed(f, args, &req); err != nil {
			return nil, req, err
		}
	}
	changes, err = r.engine.svc.Feed.Changes(ctx, req)
	return changes, req, err
}

// Present implements [stream.Execution].
func (s *execution) Present(ctx context.Context, err error) *gqlerror.Error {
	return s.answers().present(ctx, err, s.field())
}

// present returns an error that ends a subscription in the form for clients. Its path is the root field.
func (r *run) present(ctx context.Context, err error, f *field) *gqlerror.Error {
	r.path = r.path[:0]
	r.reportAll(ctx, err, f)
	all := graphql.GetErrors(ctx)
	return all[len(all)-1]
}

// Answer implements [stream.Execution]. If it panics, the answer has no data.
func (s *execution) Answer(ctx context.Context, c *change.Change) (res *graphql.Response, ended *gqlerror.Error) {
	r, f := s.answers(), s.field()
	defer func() {
		if v := recover(); v != nil {
			s.run = nil
			res, ended = r.recovered(ctx, v, c.Cursor)
		}
	}()
	if rights := s.changes.Rights(); rights != nil {
		ctx = access.WithRights(ctx, rights)
	}
	ctx, traced := s.traceDelivery(ctx, c)
	defer traced.End()
	r.traced = traced.Recording()
	r.renew(ctx)
	if c.Type == change.Snapshot { // there may be very many in a row
		budget.From(ctx).Long(ctx)
	}
	defer r.release()
	return &graphql.Response{Data: r.event(ctx, f, &resolved{change: c})}, nil
}

// recovered returns the answer to an event after a panic: an answer without data or, if the event has exceeded its
// budget, the error that ends the subscription. A client that resumes from the cursor in that error continues with the
// next event.
func (r *run) recovered(ctx context.Context, v any, cursor string) (*graphql.Response, *gqlerror.Error) {
	h, over := v.(*halted)
	switch {
	case !over:
		graphql.AddError(ctx, r.oc.Recover(ctx, v))
		return &graphql.Response{Data: []byte("null")}, nil
	case ctx.Err() != nil:
		return nil, nil // nobody listens any more
	}
	if cursor != "" {
		h.err.Extensions["cursor"] = cursor
	}
	graphql.AddError(ctx, h.err)
	all := graphql.GetErrors(ctx)
	return nil, all[len(all)-1]
}

// renew prepares a run for the next event.
func (r *run) renew(ctx context.Context) {
	r.path = r.path[:0]
	r.next = r.next[:0]
	budget.From(ctx).Arrive()
	r.openBudget(ctx, 0)
}

// maxSpareEvent is the maximum size of a buffer that a subscription keeps for the next event, in bytes.
const maxSpareEvent = 4 << 10

// event writes the answer to an event into the buffer of the previous answer.
func (r *run) event(ctx context.Context, f *field, a *resolved) []byte {
	buf := append(r.buf[:0], f.prefix...)
	at := len(buf)
	buf, some := r.writeRoot(ctx, buf, f, a)
	buf = r.room(ctx, f, buf, 0)
	r.chargeWritten(len(buf))
	switch {
	case some:
		buf = append(buf, '}')
	case f.nonNull:
		buf = append(buf[:0], "null"...)
	default:
		buf = append(buf[:at], "null}"...)
	}
	r.buf = buf
	if cap(buf) > maxSpareEvent {
		r.buf = nil
	}
	return buf
}
