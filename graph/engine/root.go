package engine

import (
	"slices"

	"github.com/tidwall/gjson"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/change"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/query"
)

// resolved is the value of a root field, before it is written.
type resolved struct {
	err     error
	item    *item
	page    *page
	nodes   []link // of the field nodes: each a resource, nothing, or why its id is refused
	written *written
	// writing is set while the service writes: it may or may not have stored something.
	writing    bool
	change     *change.Change
	summary    *query.Summary
	namespaces *query.NamespacePage
	// core is the value of a field of the core; marks are the values in it that resolvers left to the engine.
	core  []byte
	marks *marks
}

// execute resolves the root fields, of a query together and of a mutation
// one after the other, and appends the answer.
func (r *run) execute(buf []byte) []byte {
	r.openBudget(len(buf))
	r.ctx, r.snapshot = query.WithSnapshot(r.ctx)
	fields := r.plan.root.fields
	r.answers = slices.Grow(r.answers[:0], len(fields))[:len(fields)]
	answers := r.answers
	defer clear(answers)
	serial := r.oc.Operation.Operation == ast.Mutation
	if !serial {
		r.executeCore(fields, answers)
		for i := range fields {
			r.resolveRoot(&fields[i], &answers[i])
		}
		r.resolve()
	}
	start, ok := len(buf), true
	for i := range fields {
		f := &fields[i]
		buf = append(buf, f.prefix...)
		at := len(buf)
		var some bool
		if serial {
			buf, some = r.mutationField(buf, fields[i:i+1], answers[i:i+1])
		} else {
			buf, some = r.writeRoot(buf, f, &answers[i])
			buf = r.room(f, buf, 0)
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

// resolveRoot executes a root field.
func (r *run) resolveRoot(f *field, a *resolved) {
	if f.op == opCore || f.op == opConst {
		return
	}
	evaluated := r.evaluated(f)
	if a.err = evaluated.err; a.err != nil {
		return
	}
	args := evaluated.values
	switch f.op {
	case opGet:
		id, err := r.identity(f, naming{values: args, namespaced: r.given(f, "namespace")})
		if a.err = err; err != nil {
			return
		}
		res, err := r.engine.svc.Get(r.ctx, id)
		r.setItem(f, a, res, err)
	case opNodeByID:
		res, err := r.engine.svc.Node(r.ctx, value[string](args, "id"))
		r.setItem(f, a, res, err)
	case opNodesByID:
		a.err = r.resolveNodes(f, a, elementsOf[string](args, "ids"))
	case opList:
		p, err := r.engine.svc.List(r.ctx, evaluated.request)
		if a.err = err; err == nil {
			a.page = r.newPage(p, f)
		} else {
			r.haltOn(err, f)
		}
	case opNamespaces:
		if a.namespaces, a.err = r.engine.svc.Namespaces(r.ctx, count(args, "first"), optional[string](args, "after")); a.err != nil {
			r.haltOn(a.err, f)
		}
	case opSummary:
		if a.summary, a.err = r.summary(f, args); a.err != nil {
			r.haltOn(a.err, f)
		}
	case opWrite, opApply:
		in := value[map[string]any](args, "input")
		a.writing = !value[bool](in, "dryRun")
		w, err := r.write(f, in)
		a.writing = false
		r.snapshot.Forget() // later reads for the answer see the write
		if a.err = err; err == nil {
			a.written = &written{Written: w, field: f, blockers: map[*field]link{}, mutationID: optional[string](in, "clientMutationId")}
			r.readWritten(a.written) // may halt, when a.written is set already
		}
	}
}

// setItem sets the value of a field that reads one resource.
func (r *run) setItem(f *field, a *resolved, res *query.Resource, err error) {
	if a.err = err; err != nil {
		r.haltOn(err, f)
		return
	}
	if b := bodyOf(res); b != nil {
		a.item = r.newItem(b, f)
	}
}

// resolveNodes reads the resources of the field nodes.
func (r *run) resolveNodes(f *field, a *resolved, ids []string) error {
	if len(ids) > maxIDs {
		return tooLong("ids", "maxItems", maxIDs, "elements")
	}
	a.nodes = make([]link, len(ids))
	keys, of := make([]backend.Key, 0, len(ids)), make([]int, 0, len(ids))
	for i, id := range ids {
		key, err := r.engine.svc.NodeKey(r.ctx, id)
		if err != nil {
			a.nodes[i].err = failure.InList(err, "ids", i)
			continue
		}
		keys, of = append(keys, key), append(of, i)
	}
	found, err := r.engine.svc.Lookup(r.ctx, keys)
	if err != nil {
		r.haltOn(err, f)
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
func (r *run) writeRoot(buf []byte, f *field, a *resolved) ([]byte, bool) {
	if a.err != nil {
		return r.null(buf, f, a.err)
	}
	switch f.op {
	case opConst:
		return append(buf, f.constant...), true
	case opCore:
		if a.marks == nil {
			return append(buf, a.core...), a.core != nil && string(a.core) != "null"
		}
		r.push(f)
		defer r.pop()
		return r.coreValue(buf, a.marks, f, f.node.Definition.Type, gjson.ParseBytes(a.core))
	case opList:
		return r.connection(buf, f, a.page)
	case opNamespaces:
		return r.below(buf, f, &source{namespaces: a.namespaces})
	case opSummary:
		return r.below(buf, f, &source{summary: a.summary})
	case opWrite, opApply:
		return r.below(buf, f, &source{written: a.written})
	case opChanges:
		return r.below(buf, f, &source{change: a.change})
	case opNodesByID:
		return r.writeNodes(buf, f, a)
	}
	if a.item == nil {
		return buf, false
	}
	return r.resource(buf, f, a.item)
}

func (r *run) writeNodes(buf []byte, f *field, a *resolved) ([]byte, bool) {
	r.push(f)
	defer r.pop()
	buf = append(buf, '[')
	for i, node := range a.nodes {
		if i > 0 {
			buf = append(buf, ',')
		}
		at, some := len(buf), false
		r.pushIndex(i)
		if node.err != nil {
			r.report(node.err, f, nil)
		}
		if it := node.item; it != nil {
			r.count(f, 1)
			r.element(f)
			buf, some = r.object(buf, f.on(it.kind), &source{item: it})
		}
		r.pop()
		if !some {
			buf = append(buf[:at], "null"...)
		}
	}
	return append(buf, ']'), true
}
