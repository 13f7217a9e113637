package engine

import (
	"context"
	"slices"

	"github.com/tidwall/gjson"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/change"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/query"
	"github.com/sluicegw/sluice/internal/span"
)

// resolved is the value of a root field before it is written.
type resolved struct {
	err     error
	item    *item
	page    *connectionPage
	nodes   []link // of the field nodes: each a resource, nothing, or why its id is refused
	written *written
	// writing is set while the service is executing a write, so that it is not known whether something was stored.
	writing bool
	// byCore is set if a resolver of the core has made a change.
	byCore     bool
	change     *change.Change
	summary    *query.Summary
	namespaces *query.NamespacePage
	// core is the value of a field of the core. placeholders are the values in it that resolvers have left to the
	// engine.
	core         []byte
	placeholders *placeholders
}

// applied reports whether the field has made a change.
func (a *resolved) applied() bool { return a.byCore || a.written != nil && !a.written.DryRun }

// execute executes the root fields and appends the answer to buf. Root fields of a query are executed together, root
// fields of a mutation one after the other.
func (r *run) execute(ctx context.Context, buf []byte) []byte {
	r.openBudget(ctx, len(buf))
	r.traced = span.Of(ctx).Recording()
	fields := r.plan.root.fields
	r.answers = slices.Grow(r.answers[:0], len(fields))[:len(fields)]
	answers := r.answers
	defer clear(answers)
	serial := r.oc.Operation.Operation == ast.Mutation
	if !serial {
		r.executeCore(ctx, fields, answers)
		for i := range fields {
			r.resolveRoot(ctx, &fields[i], &answers[i])
		}
		r.resolve(ctx)
	}
	start, ok := len(buf), true
	for i := range fields {
		f := &fields[i]
		buf = append(buf, f.prefix...)
		at := len(buf)
		var some bool
		if serial {
			buf, some = r.mutationField(ctx, buf, fields[i:i+1], answers[i:i+1])
		} else {
			buf, some = r.writeRoot(ctx, buf, f, &answers[i])
			buf = r.room(ctx, f, buf, 0)
		}
		if !some {
			buf = append(buf[:at], "null"...)
			ok = ok && !f.nonNull
		}
	}
	r.chargeWritten(len(buf) - start)
	switch {
	case !ok:
		return append(buf[:start], "null"...)
	case len(fields) == 0:
		return append(buf, "{}"...)
	}
	return append(buf, '}')
}

// getRootField returns the entry of a field that reads one resource of a kind.
func getRootField() derivedField {
	return derivedField{compile: compileArguments, resolve: resolveGet, write: writeRootItem}
}

func nodeRootField() derivedField {
	return derivedField{compile: compileArguments, resolve: resolveNode, write: writeRootItem}
}

func nodesRootField() derivedField {
	return derivedField{compile: compileArguments, resolve: resolveNodes, write: writeRootNodes}
}

// listRootField returns the entry of a connection of the resources of one kind, or of all kinds.
func listRootField() derivedField {
	return derivedField{compile: compileConnection, resolve: resolveList, write: writeRootPage}
}

// resolveRoot executes a root field that the core does not execute.
func (r *run) resolveRoot(ctx context.Context, f *field, a *resolved) {
	if f.resolve == nil {
		return
	}
	args := r.evaluated(ctx, f)
	if args.err != nil {
		a.err = args.err
		return
	}
	within, traced := r.traceRead(ctx, f)
	a.err = f.resolve(within, r, f, a, args)
	traced.End()
	if a.err != nil {
		r.haltOn(ctx, a.err, f)
	}
}

func resolveGet(ctx context.Context, r *run, f *field, a *resolved, args *arguments) error {
	id, err := r.identity(f, naming{values: args.values, namespaced: r.given(f, "namespace")})
	if err != nil {
		return err
	}
	res, err := r.engine.svc.Reader.Get(ctx, id)
	if err != nil {
		return err
	}
	r.setItem(f, a, res)
	return nil
}

func resolveNode(ctx context.Context, r *run, f *field, a *resolved, args *arguments) error {
	res, err := r.engine.svc.Reader.Node(ctx, value[string](args.values, "id"))
	if err != nil {
		return err
	}
	r.setItem(f, a, res)
	return nil
}

func resolveList(ctx context.Context, r *run, f *field, a *resolved, args *arguments) error {
	p, err := r.engine.svc.Reader.List(ctx, args.request)
	if err != nil {
		return err
	}
	a.page = r.newPage(p, f)
	return nil
}

// setItem sets the value of a root field that reads one resource.
func (r *run) setItem(f *field, a *resolved, res *query.Resource) {
	if b := bodyOf(res); b != nil {
		a.item = r.newItem(b, f)
	}
}

// resolveNodes reads the resources of the field nodes.
func resolveNodes(ctx context.Context, r *run, f *field, a *resolved, args *arguments) error {
	ids := elementsOf[string](args.values, "ids")
	if len(ids) > maxIDs {
		return tooLong("ids", "maxItems", maxIDs, "elements")
	}
	a.nodes = make([]link, len(ids))
	keys, of := make([]backend.Key, 0, len(ids)), make([]int, 0, len(ids))
	for i, id := range ids {
		key, err := r.engine.svc.Reader.NodeKey(ctx, id)
		if err != nil {
			a.nodes[i].err = failure.InList(err, "ids", i)
			continue
		}
		keys, of = append(keys, key), append(of, i)
	}
	found, err := r.engine.svc.Reader.Lookup(ctx, keys)
	if err != nil {
		return err
	}
	for n, res := range found {
		if b := bodyOf(res); b != nil {
			a.nodes[of[n]].item = r.newItem(b, f)
		}
	}
	return nil
}

// writeRoot writes the value of a root field.
func (r *run) writeRoot(ctx context.Context, buf []byte, f *field, a *resolved) ([]byte, bool) {
	switch {
	case a.err != nil:
		return r.null(ctx, buf, f, a.err)
	case f.byCore && a.placeholders == nil:
		return append(buf, a.core...), a.core != nil && string(a.core) != "null"
	case f.byCore:
		r.push(f)
		defer r.pop()
		return coreWriter{r, a.placeholders}.value(ctx, buf, f, f.node.Definition.Type, gjson.ParseBytes(a.core))
	}
	return f.write(ctx, r, buf, f, source{root: a})
}

// writeRootObject writes an object whose fields are read from the value of the root field.
func writeRootObject(ctx context.Context, r *run, buf []byte, f *field, src source) ([]byte, bool) {
	return r.below(ctx, buf, f, src)
}

func writeRootItem(ctx context.Context, r *run, buf []byte, f *field, src source) ([]byte, bool) {
	if src.root.item == nil {
		return buf, false
	}
	return r.resource(ctx, buf, f, src.root.item)
}

func writeRootPage(ctx context.Context, r *run, buf []byte, f *field, src source) ([]byte, bool) {
	return r.connection(ctx, buf, f, src.root.page)
}

func writeRootNodes(ctx context.Context, r *run, buf []byte, f *field, src source) ([]byte, bool) {
	r.push(f)
	defer r.pop()
	buf = append(buf, '[')
	for i, node := range src.root.nodes {
		if i > 0 {
			buf = append(buf, ',')
		}
		at, some := len(buf), false
		r.pushIndex(i)
		if node.err != nil {
			r.report(ctx, node.err, f, nil)
		}
		if it := node.item; it != nil {
			r.count(f, 1)
			r.element(ctx, f)
			buf, some = r.object(ctx, buf, f.on(it.kind), source{item: it})
		}
		r.pop()
		if !some {
			buf = append(buf[:at], "null"...)
		}
	}
	return append(buf, ']'), true
}
