package engine

import (
	"github.com/99designs/gqlgen/graphql"
	"github.com/tidwall/gjson"
	"github.com/vektah/gqlparser/v2/ast"
)

// executeCore executes the root fields that are no kind's, all in one operation
// of the core. Their errors go to the same answer.
func (r *run) executeCore(fields []field, answers []answer) {
	var set ast.SelectionSet
	for i := range fields {
		if f := &fields[i]; f.op == opCore {
			node := *f.node
			node.SelectionSet, node.Directives = f.set, nil // they were evaluated
			set = append(set, &node)
		}
	}
	if len(set) == 0 {
		return
	}
	operation := *r.oc.Operation
	operation.SelectionSet = set
	oc := &graphql.OperationContext{
		RawQuery: r.oc.RawQuery, Variables: r.oc.Variables, OperationName: r.oc.OperationName, Doc: r.oc.Doc, Operation: &operation,
		Extensions: r.oc.Extensions, Headers: r.oc.Headers, DisableIntrospection: r.oc.DisableIntrospection, RecoverFunc: r.oc.RecoverFunc,
		ResolverMiddleware: r.oc.ResolverMiddleware, RootResolverMiddleware: r.oc.RootResolverMiddleware, Stats: r.oc.Stats,
	}
	ctx := graphql.WithOperationContext(r.ctx, oc)
	res := r.engine.core.Exec(ctx)(ctx)
	if res == nil {
		return
	}
	for _, err := range res.Errors {
		graphql.AddError(r.ctx, err)
	}
	for i := range fields {
		if f := &fields[i]; f.op == opCore {
			if v := gjson.GetBytes(res.Data, gjson.Escape(f.alias)); v.Exists() {
				answers[i].core = []byte(v.Raw)
			}
		}
	}
}
