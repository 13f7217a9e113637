package engine

import (
	"context"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/graph/loader"
	"github.com/sluicegw/sluice/graph/stream"
)

// subscribeCore begins a subscription of a resolver that is written by hand. The resources that it leaves to the engine
// are read for each event.
func (e *Engine) subscribeCore(ctx context.Context, oc *graphql.OperationContext, p *plan) graphql.ResponseHandler {
	f := &p.root.fields[0]
	r := &run{engine: e, oc: oc, plan: p}
	set, state := ast.SelectionSet{f.core}, stream.From(ctx)
	next := e.core.Exec(r.coreContext(ctx, &placeholders{engine: e}, set))
	waiting := join(ctx, false, nil, e.streams)
	return func(ctx context.Context) (res *graphql.Response) {
		if waiting.Err() != nil {
			r.retire(ctx, f, state)
			return nil
		}
		m := &placeholders{engine: e}
		event, interrupt := context.WithCancel(ctx)
		defer interrupt()
		defer context.AfterFunc(waiting, interrupt)()
		event = loader.With(r.coreContext(event, m, set), e.svc.Reader, e.wait)
		// The core writes an event in the context of the caller of next, so the path of its errors
		// begins here.
		event = graphql.WithFieldContext(event, &graphql.FieldContext{
			Object: e.schema.Subscription.Name,
			Field:  graphql.CollectedField{Field: f.core},
		})
		defer func() {
			v := recover()
			if v == nil {
				return
			}
			r = &run{engine: e, oc: oc, plan: p}
			if h, ok := v.(*halted); ok {
				end(ctx, state, h, "")
				res = nil
				return
			}
			graphql.AddError(ctx, oc.Recover(ctx, v))
			res = &graphql.Response{Data: []byte("null")}
		}()
		r.renew(ctx)
		r.checkAliases(p.root.fields[:1])
		spent := budget.From(ctx)
		spent.BeginWait()
		res = next(event)
		spent.EndWait(ctx)
		if waiting.Err() != nil {
			r.retire(ctx, f, state)
			return nil
		}
		if res == nil {
			return nil
		}
		r.renew(ctx)
		defer r.release()
		answers := make([]resolved, 1)
		r.takeCore(ctx, p.root.fields[:1], answers, m, res)
		r.resolve(ctx)
		return &graphql.Response{Data: r.event(ctx, f, &answers[0])}
	}
}
