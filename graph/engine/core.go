package engine

import (
	"bytes"
	"context"
	"reflect"
	"slices"
	"strings"

	"github.com/99designs/gqlgen/graphql"
	"github.com/tidwall/gjson"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/graph/loader"
	"github.com/sluicegw/sluice/graph/stream"
)

// typeField is the alias of __typename in operations for the core. No field of the API has this name.
const typeField = "$type"

// coreField returns a field for gqlgen's code to execute. It has the selections that [compiler.collect] has returned,
// so that the answer has exactly the fields of the plan.
func (c *compiler) coreField(f *field) *ast.Field {
	node := *f.node
	node.Directives, node.SelectionSet = nil, nil // @skip and @include were evaluated
	def := c.engine.schema.Types[node.Definition.Type.Name()]
	switch {
	case strings.HasPrefix(node.Name, "__"):
		node.SelectionSet = f.set
	case f.sub != nil && c.engine.types[def.Name] == nil:
		node.SelectionSet = c.coreSet(f.sub)
	case f.abstract != nil && c.engine.isCore(def):
		node.SelectionSet = ast.SelectionSet{&ast.Field{Alias: typeField, Name: "__typename", Position: node.Position}}
		for _, possible := range c.engine.schema.PossibleTypes[def.Name] {
			node.SelectionSet = append(node.SelectionSet, &ast.InlineFragment{
				TypeCondition:    possible.Name,
				SelectionSet:     c.coreSet(f.abstract.on(possible.Name)),
				ObjectDefinition: possible,
				Position:         node.Position,
			})
		}
	}
	return &node
}

func (c *compiler) coreSet(o *object) (set ast.SelectionSet) {
	for i := range o.fields {
		set = append(set, c.coreField(&o.fields[i]))
	}
	return set
}

// isCore reports whether the core executes all possible types of an abstract type.
func (e *Engine) isCore(def *ast.Definition) bool {
	return !slices.ContainsFunc(e.schema.PossibleTypes[def.Name], func(d *ast.Definition) bool {
		return e.types[d.Name] != nil
	})
}

// coreAtOnce is the number of root fields that the core executes at once. gqlgen starts a goroutine for each element of
// each list, so more fields would delay other requests.
const coreAtOnce = 4

// executeCore executes the root fields of the core, a few at once, and adds their errors to the answer. Resources that
// resolvers left to the engine are added to the next level.
func (r *run) executeCore(ctx context.Context, fields []field, answers []resolved) {
	var set ast.SelectionSet
	for i := range fields {
		if f := &fields[i]; f.byCore {
			set = append(set, f.core)
		}
	}
	if len(set) == 0 {
		return
	}
	r.snapshot.ReadOutside() // nobody knows what resolvers read
	if output := stream.OutputOf(ctx); output != nil && slices.ContainsFunc(set, isResolved) {
		output.MarkSecret() // nobody knows what resolvers return
	}
	r.chargeIntrospection(ctx, fields)
	r.checkAliases(fields)
	m := &placeholders{engine: r.engine}
	for some := range slices.Chunk(set, coreAtOnce) {
		core := loader.With(r.coreContext(ctx, m, some), r.engine.svc.Reader, r.engine.wait)
		var res *graphql.Response
		if r.oc.Operation.Operation == ast.Mutation {
			var errs gqlerror.List
			res, errs = r.mutateCore(core, &answers[0])
			for _, err := range errs {
				graphql.AddError(ctx, err)
			}
		} else {
			res = r.engine.core.Exec(core)(core)
		}
		if r.oc.Operation.Operation != ast.Mutation { // a mutation that was executed is always answered
			r.haltOn(ctx, r.spent.budget.Over(), coreOf(fields))
			r.checkContext(ctx, coreOf(fields))
		}
		if res != nil {
			r.takeCore(ctx, fields, answers, m, res)
		}
	}
}

// isResolved reports whether a field of the core has a resolver. Fields of introspection have none.
func isResolved(f ast.Selection) bool { return !strings.HasPrefix(f.(*ast.Field).Name, "__") }

// mutateCore executes a root field of a mutation in the core and records whether the change was made. It returns the
// response and its errors.
func (r *run) mutateCore(ctx context.Context, a *resolved) (*graphql.Response, gqlerror.List) {
	m := &coreMutation{run: r}
	ctx = m.context(ctx)
	res := r.engine.core.Exec(ctx)(ctx)
	a.byCore = m.applied
	return res, graphql.GetErrors(ctx)
}

// coreOf returns the first field of the core. There must be one.
func coreOf(fields []field) *field {
	return &fields[slices.IndexFunc(fields, func(f field) bool { return f.byCore })]
}

// coreContext returns a context in which the core executes the root fields of set.
func (r *run) coreContext(ctx context.Context, m *placeholders, set ast.SelectionSet) context.Context {
	return context.WithValue(graphql.WithOperationContext(ctx, r.operationOf(set)), placeholdersKey{}, m)
}

// takeCore copies the values of fields from an answer of the core, and adds the resources that resolvers left to the
// engine to the next level.
func (r *run) takeCore(
	ctx context.Context, fields []field, answers []resolved, m *placeholders, res *graphql.Response,
) {
	for _, err := range res.Errors {
		graphql.AddError(ctx, err)
	}
	var found []placeholderField
	for i := range fields {
		f := &fields[i]
		if !f.byCore {
			continue
		}
		v := gjson.GetBytes(res.Data, gjson.Escape(f.alias))
		if !v.Exists() {
			continue
		}
		answers[i].core = []byte(v.Raw)
		if bytes.Contains(answers[i].core, []byte(`{"$`)) { // a placeholder, or the name of a type
			answers[i].placeholders = m
			found = r.collectPlaceholders(found, m, f, f.node.Definition.Type, gjson.ParseBytes(answers[i].core))
		}
	}
	r.readPlaceholders(ctx, found)
}

// errLeft returns the error of fields that the core does not execute because the client has left. It is not logged.
func errLeft() error {
	return &failure.Error{Code: failure.CodeTimeout, Message: timedOut, Retryable: true}
}

// coreMiddleware is the middleware of query fields in the core. It does not execute a field if the client has left or
// the budget is spent. It charges the value of a field before gqlgen executes the fields below it, for which gqlgen
// starts a goroutine for each element of a list. Introspection was charged before.
func (r *run) coreMiddleware(ctx context.Context, next graphql.Resolver) (any, error) {
	spent := r.spent.budget
	if ctx.Err() != nil {
		return nil, errLeft()
	}
	if err := spent.Over(); err != nil {
		return nil, err
	}
	fc := graphql.GetFieldContext(ctx)
	hidden := strings.HasPrefix(fc.Object, "__") || strings.HasPrefix(fc.Field.Name, "__")
	if fc.Object == "Query" && !hidden {
		if err := spent.Spend(budget.Steps, budget.Object+budget.Field); err != nil {
			return nil, err
		}
	}
	out, err := r.oc.ResolverMiddleware(ctx, next)
	if err != nil || hidden {
		return out, err
	}
	selected := 0
	for range selectedFields(fc.Field.Selections) {
		selected++
	}
	if selected > 0 {
		if err := spent.Spend(budget.Steps, elements(out)*(budget.Object+budget.Field*selected)); err != nil {
			return nil, err
		}
		spent.Pace(ctx)
	}
	return out, err
}

// elements returns the number of objects in the result of a resolver.
func elements(v any) int {
	switch of := reflect.ValueOf(v); {
	case !of.IsValid() || of.Kind() == reflect.Pointer && of.IsNil():
		return 0
	case of.Kind() == reflect.Slice:
		return of.Len()
	}
	return 1
}

// operationOf returns a copy of the run's operation with the root fields of set.
func (r *run) operationOf(set ast.SelectionSet) *graphql.OperationContext {
	operation := *r.oc.Operation
	operation.SelectionSet = set
	middleware := r.oc.ResolverMiddleware
	if operation.Operation == ast.Query && middleware != nil {
		middleware = r.coreMiddleware
	}
	return &graphql.OperationContext{
		RawQuery:               r.oc.RawQuery,
		Variables:              r.oc.Variables,
		OperationName:          r.oc.OperationName,
		Doc:                    r.oc.Doc,
		Operation:              &operation,
		Extensions:             r.oc.Extensions,
		Headers:                r.oc.Headers,
		DisableIntrospection:   r.oc.DisableIntrospection,
		RecoverFunc:            r.oc.RecoverFunc,
		ResolverMiddleware:     middleware,
		RootResolverMiddleware: r.oc.RootResolverMiddleware,
		Stats:                  r.oc.Stats,
	}
}

// coreWriter writes values of the core, and replaces the placeholders in them by resources and pages.
type coreWriter struct {
	*run
	placeholders *placeholders
}

// value writes a value of type t. It returns false if the value is null, or if a null that is not allowed has
// propagated to it.
func (w coreWriter) value(ctx context.Context, buf []byte, f *field, t *ast.Type, v gjson.Result) ([]byte, bool) {
	if v.Type == gjson.Null {
		return buf, false
	}
	if t.Elem != nil {
		buf = append(buf, '[')
		ok := true
		for i, e := range v.Array() {
			if i > 0 {
				buf = append(buf, ',')
			}
			w.pushIndex(i)
			at := len(buf)
			var some bool
			buf, some = w.value(ctx, buf, f, t.Elem, e)
			if !some {
				buf = append(buf[:at], "null"...)
				ok = ok && !t.Elem.NonNull
			}
			w.pop()
		}
		return append(buf, ']'), ok
	}
	if f.sub == nil && f.abstract == nil || !v.IsObject() {
		return append(buf, v.Raw...), true
	}
	if placeholder := w.placeholders.placeholderOf(v); placeholder != nil {
		return w.placeholderValue(ctx, buf, f, t, placeholder)
	}
	return w.object(ctx, buf, f.onCore(v), v)
}

// object writes the selected fields of v, an object of the core.
func (w coreWriter) object(ctx context.Context, buf []byte, o *object, v gjson.Result) ([]byte, bool) {
	if len(o.fields) == 0 { // all were skipped
		return append(buf, "{}"...), true
	}
	ok := true
	for i := range o.fields {
		f := &o.fields[i]
		buf = append(buf, f.prefix...)
		at := len(buf)
		some := !f.byCore
		if some {
			buf = append(buf, f.constant...)
		} else {
			w.push(f)
			buf, some = w.value(ctx, buf, f, f.node.Definition.Type, v.Get(gjson.Escape(f.alias)))
			w.pop()
		}
		if !some {
			buf = append(buf[:at], "null"...)
			ok = ok && !f.nonNull
		}
	}
	return append(buf, '}'), ok
}

// onCore returns the selection below the field for an object of the core.
func (f *field) onCore(v gjson.Result) *object {
	if f.abstract != nil {
		return f.abstract.on(v.Get(typeField).String())
	}
	return f.sub
}
