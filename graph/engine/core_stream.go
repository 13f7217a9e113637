package engine

import (
	"context"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/graph/loader"
	"github.com/sluicegw/sluice/graph/stream"
	"github.com/sluicegw/sluice/internal/span"
)

// coreEvents makes the answers of a subscription with a hand-written resolver. For each event it reads the resources
// that the resolver left to the engine.
type coreEvents struct {
	engine *Engine
	oc     *graphql.OperationContext
	plan   *plan
	run    *run
	// next returns the next answer of the core; nil at the end.
	next graphql.ResponseHandler
	// waiting is a context that ends with the subscription, or earlier when the catalogue is replaced.
	waiting context.Context
}

// subscribeCore begins a subscription with a hand-written resolver.
func (e *Engine) subscribeCore(ctx context.Context, oc *graphql.OperationContext, p *plan) stream.Events {
	r := &run{engine: e, oc: oc, plan: p}
	set := ast.SelectionSet{p.root.fields[0].core}
	return &coreEvents{
		engine:  e,
		oc:      oc,
		plan:    p,
		run:     r,
		next:    e.core.Exec(r.coreContext(ctx, &placeholders{engine: e}, set)),
		waiting: join(span.Detach(ctx), false, nil, e.streams),
	}
}

// Next implements [stream.Events].
func (s *coreEvents) Next(ctx context.Context) (answer stream.Answer) {
	if s.waiting.Err() != nil {
		return s.replaced(ctx)
	}
	defer func() {
		if v := recover(); v != nil {
			r := s.run
			s.run = &run{engine: s.engine, oc: s.oc, plan: s.plan}
			res, ended := r.recovered(ctx, v, "")
			answer = stream.Answer{Response: res}
			if ended != nil {
				answer.Errors = gqlerror.List{ended}
			}
		}
	}()
	r, fields := s.run, s.plan.root.fields[:1]
	r.renew(ctx)
	r.checkAliases(fields)
	m := &placeholders{engine: s.engine}
	res := s.ofCore(ctx, m)
	if s.waiting.Err() != nil {
		return s.replaced(ctx)
	}
	if res == nil {
		return stream.Answer{}
	}
	r.renew(ctx)
	defer r.release()
	answers := make([]resolved, 1)
	r.takeCore(ctx, fields, answers, m, res)
	r.resolve(ctx)
	return stream.Answer{Response: &graphql.Response{Data: r.event(ctx, &fields[0], &answers[0])}}
}

// ofCore waits for the next answer of the core. It returns earlier if the catalogue is replaced.
func (s *coreEvents) ofCore(ctx context.Context, m *placeholders) *graphql.Response {
	event, interrupt := context.WithCancel(ctx)
	defer interrupt()
	defer context.AfterFunc(s.waiting, interrupt)()
	core := s.plan.root.fields[0].core
	event = loader.With(s.run.coreContext(event, m, ast.SelectionSet{core}), s.engine.svc.Reader, s.engine.wait)
	// The core executes an event with the context that is passed to next, so the paths of errors begin with this field.
	event = graphql.WithFieldContext(event, &graphql.FieldContext{
		Object: s.engine.schema.Subscription.Name,
		Field:  graphql.CollectedField{Field: core},
	})
	spent := budget.From(ctx)
	spent.BeginWait()
	defer spent.EndWait(ctx)
	return s.next(event)
}

// replaced returns the last answer of a subscription without cursors whose catalogue was replaced.
func (s *coreEvents) replaced(ctx context.Context) stream.Answer {
	if ctx.Err() != nil {
		return stream.Answer{} // nobody listens any more
	}
	err := s.run.present(ctx, stream.ReplacedError(""), &s.plan.root.fields[0])
	return stream.Answer{Errors: gqlerror.List{err}}
}
