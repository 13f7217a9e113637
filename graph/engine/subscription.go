package engine

import (
	"context"

	"github.com/99designs/gqlgen/graphql"

	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/graph/stream"
)

// subscription is a stream of changes that a client listens to. Whoever asks
// for the next answer takes the next change: there is no goroutine and no channel.
type subscription struct {
	field   *field
	changes *service.Changes
	// pending are changes that were taken and not yet answered.
	pending []service.Change
	run     *run
	state   *stream.State
}

// subscribe begins a subscription.
func (e *Engine) subscribe(ctx context.Context, oc *graphql.OperationContext, p *plan) graphql.ResponseHandler {
	f := &p.root.fields[0]
	if f.op == opCore {
		return e.core.Exec(ctx)
	}
	begin := &run{engine: e, ctx: ctx, oc: oc, plan: p, caller: service.CallerFrom(ctx)}
	changes, err := begin.changes(f)
	if err != nil {
		begin.failed(err, f)
		return func(context.Context) *graphql.Response { return nil }
	}
	context.AfterFunc(ctx, changes.Close)
	s := &subscription{field: f, changes: changes, state: stream.From(ctx)}
	s.run = &run{engine: e, oc: oc, plan: p, caller: begin.caller}
	return s.next
}

// changes opens the stream that the arguments ask for.
func (r *run) changes(f *field) (*service.Changes, error) {
	args, err := r.arguments(f)
	if err != nil {
		return nil, err
	}
	kinds := value[[]any](args, "kinds")
	if len(kinds) > maxKinds {
		return nil, tooLong("kinds", "maxItems", maxKinds, "elements")
	}
	req := service.ChangesRequest{
		Namespace: optional[string](args, "namespace"), Name: optional[string](args, "name"), Filter: args["filter"],
		After: stream.From(r.ctx).Resume(optional[string](args, "after")), Snapshot: value[bool](args, "snapshot"),
	}
	if f.kind != nil {
		req.Kinds = []string{f.kind.Name}
	}
	for _, k := range kinds {
		req.Kinds = append(req.Kinds, k.(string))
	}
	return r.engine.svc.Changes(r.ctx, r.caller, req)
}

// next is the answer for the next change, nil at the end of the stream.
func (s *subscription) next(ctx context.Context) *graphql.Response {
	for len(s.pending) == 0 {
		var err error
		s.pending, err = s.changes.Next(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			s.run.ctx, s.run.path = ctx, s.run.path[:0]
			s.run.failed(err, s.field)
			all := graphql.GetErrors(ctx)
			s.state.End(all[max(len(all)-1, 0):]...)
			return nil
		}
	}
	c := &s.pending[0]
	s.pending = s.pending[1:]
	s.state.Push(c.Cursor)
	return &graphql.Response{Data: s.answer(ctx, c)}
}

// answer writes the answer for a change in the memory of the one before. A
// panic costs that one answer.
func (s *subscription) answer(ctx context.Context, c *service.Change) (data []byte) {
	r, f := s.run, s.field
	defer func() {
		if v := recover(); v != nil {
			graphql.AddError(ctx, r.oc.Recover(ctx, v))
			data = []byte("null")
			s.run = &run{engine: r.engine, oc: r.oc, plan: r.plan, caller: r.caller}
		}
	}()
	r.ctx, r.path, r.next = ctx, r.path[:0], r.next[:0]
	r.forget()
	buf := append(r.buf[:0], f.prefix...)
	buf, ok := r.root(buf, f, &resolved{change: c})
	if !ok {
		buf = append(buf[:0], "null"...)
	} else {
		buf = append(buf, '}')
	}
	r.buf = buf
	return buf
}
