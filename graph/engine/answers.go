package engine

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/service/query"
	queryplan "github.com/sluicegw/sluice/backend/service/query/plan"
	"github.com/sluicegw/sluice/graph/answer"
)

// KeptExtension is the key of an extension in [graphql.Stats]. Its value is true if the answer came from the cache.
const KeptExtension = "kept"

// answering is a query for which a kept answer may be used, or whose new answer may be kept.
type answering struct {
	engine   *Engine
	plan     *plan
	snapshot *query.Snapshot
	// key identifies the query among the kept answers; zero if its answers cannot be kept.
	key answer.Key
	// turn is the right to execute the query while equal queries wait for its answer; nil if none was given.
	turn *answer.Turn
}

var _ answer.State = (*answering)(nil)

// keeps reports whether answers of an operation may be kept.
func (e *Engine) keeps(ctx context.Context, oc *graphql.OperationContext, p *plan) bool {
	return e.answers != nil && p.number != 0 && oc.Operation.Operation == ast.Query &&
		queryplan.ExplanationFrom(ctx) == nil
}

// countNotKept counts a query whose answers may not be kept.
func (e *Engine) countNotKept(ctx context.Context, oc *graphql.OperationContext) {
	if e.answers != nil && oc.Operation.Operation == ast.Query {
		e.answers.CountUncached(budget.From(ctx).Spent(budget.Steps))
	}
}

// find returns a kept answer for the query. If it returns nil, the caller executes the query and then calls end.
func (a *answering) find(ctx context.Context, oc *graphql.OperationContext) *answer.Kept {
	if a.plan.small.Load() {
		return nil
	}
	a.snapshot.Record()
	if !a.setKey(ctx, oc) {
		return nil
	}
	var kept *answer.Kept
	kept, a.turn = a.engine.answers.Find(ctx, a.key, a)
	if kept == nil || budget.From(ctx).Spend(budget.Bytes, len(kept.Body())) != nil {
		return nil
	}
	return kept
}

// setKey sets the key of the query. It returns false if answers to the query cannot be kept.
func (a *answering) setKey(ctx context.Context, oc *graphql.OperationContext) (ok bool) {
	a.key.Variables, ok = variablesKey(oc.Variables)
	if !ok {
		return false
	}
	rights, err := a.engine.svc.Reader.Rights(ctx)
	if err != nil { // the execution reports it
		return false
	}
	a.key.Plan = a.plan.number
	a.key.Rights = rights.Key()
	return true
}

// IsValid implements [answer.State].
func (a *answering) IsValid(ctx context.Context, basis *query.Basis) bool {
	return a.engine.svc.Reader.IsValid(ctx, basis)
}

// Renew implements [answer.State].
func (a *answering) Renew(ctx context.Context) bool {
	a.snapshot.Forget()
	a.snapshot.Record()
	rights, err := a.engine.svc.Reader.Rights(ctx)
	return err == nil && rights.Key() == a.key.Rights
}

// end gives the finished answer to the cache, which may keep it. body is nil if there is no answer or if it has errors.
func (a *answering) end(ctx context.Context, body []byte) {
	r := answer.Result{
		Body: body, Steps: budget.From(ctx).Spent(budget.Steps), Interrupted: ctx.Err() != nil,
	}
	switch {
	case a.key.Plan == 0:
		a.engine.answers.CountUncached(r.Steps)
	case a.turn != nil:
		r.Basis = a.basis(body)
		a.turn.End(r)
	default:
		r.Basis = a.basis(body)
		a.engine.answers.Executed(a.key, &r)
	}
	if body == nil { // the work of an answer with errors says nothing about other answers of the plan
		return
	}
	small := a.engine.answers.IsSmall(&r)
	if !small {
		a.plan.large.Store(true)
	}
	a.plan.small.Store(small && !a.plan.large.Load())
}

// basis returns what the answer depends on; nil if it may not be kept.
func (a *answering) basis(body []byte) *query.Basis {
	if body == nil {
		return nil
	}
	basis, ok := a.snapshot.Basis()
	if !ok {
		return nil
	}
	return &basis
}

// variablesKey encodes variables so that different values have different texts. It returns false if they cannot be
// encoded in this way, or if the text would be too long.
func variablesKey(variables map[string]any) (string, bool) {
	if len(variables) == 0 {
		return "", true
	}
	text, err := json.Marshal(variables) // it sorts the keys of maps
	// json.Marshal writes all invalid UTF-8 as this escape, so different values could have the same text.
	if err != nil || len(text) > answer.MaxVariables || bytes.Contains(text, []byte(`\ufffd`)) {
		return "", false
	}
	return string(text), true
}
