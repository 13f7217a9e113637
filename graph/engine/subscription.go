package engine

import (
	"context"

	"github.com/99designs/gqlgen/graphql"

	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/change"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/graph/stream"
)

// execution answers the changes of a subscription. It has no goroutine and no channel: next takes a
// change and answers it in the caller's goroutine.
type execution struct {
	engine  *Engine
	oc      *graphql.OperationContext
	plan    *plan
	changes *change.Stream
	// pending are changes that were taken from the stream and not answered yet.
	pending []change.Change
	// run writes the answers; nil until it is needed.
	run   *run
	state *stream.State
	// waiting ends with the stream, or earlier when the catalogue is replaced. Then no further
	// change is answered; an answer that has begun is completed.
	waiting context.Context
	// everyKind reports whether the subscription is for changes of all kinds.
	everyKind bool
	// cursor is the cursor to resume from after all answers so far; empty if the stream
	// cannot be resumed.
	cursor string
	// retired reports whether the shared execution has ended because the catalogue was replaced.
	retired bool
}

// subscribe begins a subscription.
func (e *Engine) subscribe(ctx context.Context, oc *graphql.OperationContext, p *plan) graphql.ResponseHandler {
	f := &p.root.fields[0]
	if f.byCore {
		return e.subscribeCore(ctx, oc, p)
	}
	if first := stream.From(ctx).First(); first != nil {
		return e.lead(ctx, oc, p, first.(*execution))
	}
	begin := &run{engine: e, oc: oc, plan: p}
	changes, req, err := begin.changes(ctx, f)
	if err != nil {
		begin.reportAll(ctx, err, f)
		return func(context.Context) *graphql.Response { return nil }
	}
	s := &execution{
		engine:    e,
		oc:        oc,
		plan:      p,
		changes:   changes,
		state:     stream.From(ctx),
		everyKind: len(req.Kinds) == 0,
	}
	s.waiting = join(ctx, false, changes.Close, e.sets(s.everyKind)...)
	if req.After != nil {
		s.cursor = *req.After
	}
	return s.next
}

// field returns the root field.
func (s *execution) field() *field { return &s.plan.root.fields[0] }

// answers returns the run that writes answers.
func (s *execution) answers() *run {
	if s.run == nil {
		s.run = &run{engine: s.engine, oc: s.oc, plan: s.plan}
	}
	return s.run
}

// sets returns the sets of streams that a subscription belongs to.
func (e *Engine) sets(everyKind bool) []*stream.Set {
	if everyKind {
		return []*stream.Set{e.streams, e.everyKind}
	}
	return []*stream.Set{e.streams}
}

// join returns a context that ends with ctx, or when one of some sets ends. It calls last at the end of ctx, if that is
// not nil. shared is as in [stream.Set.Join].
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

// replaced returns the error that ends a stream whose catalogue was replaced.
func replaced(cursor string) error {
	how := "begin it again"
	if cursor != "" {
		how = "resume after extensions.cursor"
	}
	return &failure.Error{Code: failure.CodeCatalogueChanged, Retryable: true, Cursor: cursor, Message: "the kinds of the gateway were replaced since the stream began; " + how}
}

// changes opens the stream of changes that the arguments ask for.
func (r *run) changes(ctx context.Context, f *field) (changes *change.Stream, req change.Request, err error) {
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
		After:      stream.From(ctx).Resume(optional[string](args, "after")),
		Snapshot:   value[bool](args, "snapshot"),
		Kinds:      kinds,
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

// next returns the answer for the next change, nil at the end of the stream.
func (s *execution) next(ctx context.Context) *graphql.Response {
	var err error
	if c := s.state.Event(); c != nil { // its group has compared the rights
		s.pending = append(s.pending, *c)
	} else {
		s.pending, err = s.changes.CheckRights(budget.With(s.waiting, budget.From(ctx)), s.pending)
	}
	for err == nil && len(s.pending) == 0 && !s.Ended() {
		if s.state.CanShare(s) {
			return nil
		}
		s.pending, err = s.changes.Next(budget.With(s.waiting, budget.From(ctx)))
	}
	if ctx.Err() != nil {
		return nil
	}
	if s.Ended() { // pending changes come again after the cursor
		err = replaced(s.cursor)
	}
	if err != nil {
		s.answers().fail(ctx, err, s.field(), s.state)
		return nil
	}
	c := &s.pending[0]
	s.pending = s.pending[1:]
	s.state.Push(c.Cursor)
	if c.Cursor != "" || c.Type == change.Reset {
		s.cursor = c.Cursor
	}
	return s.answer(ctx, c)
}

// fail ends a stream with an error.
func (r *run) fail(ctx context.Context, err error, f *field, state *stream.State) {
	r.path = r.path[:0]
	r.reportAll(ctx, err, f)
	all := graphql.GetErrors(ctx)
	state.End(all[max(len(all)-1, 0):]...)
}

// retire ends a stream without cursors because its catalogue was replaced, unless the client has
// left.
func (r *run) retire(ctx context.Context, f *field, state *stream.State) {
	if ctx.Err() == nil {
		r.fail(ctx, replaced(""), f, state)
	}
}

// answer returns the answer for a change, in the buffer of the previous answer. After a panic the
// answer has no data; an event that exceeds the budget ends the stream.
func (s *execution) answer(ctx context.Context, c *change.Change) (res *graphql.Response) {
	r, f := s.answers(), s.field()
	defer func() {
		v := recover()
		if v == nil {
			return
		}
		s.run = nil
		h, over := v.(*halted)
		switch {
		case over && s.state.First() != nil:
			graphql.AddError(ctx, h.err) // each follower executes the change with its own budget
		case over:
			end(ctx, s.state, h, c.Cursor)
			res = nil
			return
		default:
			graphql.AddError(ctx, r.oc.Recover(ctx, v))
		}
		res = &graphql.Response{Data: []byte("null")}
	}()
	if rights := s.changes.Rights(); rights != nil {
		ctx = access.WithRights(ctx, rights)
	}
	r.renew(ctx)
	if c.Type == change.Snapshot { // there may be very many in a row
		budget.From(ctx).Long(ctx)
	}
	defer r.release()
	return &graphql.Response{Data: r.event(ctx, f, &resolved{change: c})}
}

// end ends a stream whose event could not be answered. A client that resumes from the event's
// cursor continues with the next event.
func end(ctx context.Context, state *stream.State, h *halted, cursor string) {
	if ctx.Err() != nil {
		return // nobody listens any more
	}
	if cursor != "" {
		h.err.Extensions["cursor"] = cursor
	}
	graphql.AddError(ctx, h.err)
	all := graphql.GetErrors(ctx)
	state.End(all[len(all)-1])
}

// renew prepares a run for the next event.
func (r *run) renew(ctx context.Context) {
	r.path = r.path[:0]
	r.next = r.next[:0]
	budget.From(ctx).Arrive()
	r.openBudget(ctx, 0)
}

// maxSpareEvent is the most bytes of a buffer that a subscription keeps for the next event.
const maxSpareEvent = 4 << 10

// event returns the answer for an event, in the buffer of the previous answer.
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
