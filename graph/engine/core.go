package engine

import (
	"bytes"
	"context"
	"errors"
	"strconv"

	"github.com/99designs/gqlgen/graphql"
	"github.com/tidwall/gjson"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/graph/loader"
)

// executeCore executes the root fields that are no kind's, all in one operation
// of the core. Their errors go to the same answer. What resolvers left to the
// engine is read with the next level.
func (r *run) executeCore(fields []field, answers []resolved) {
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
	m := &marks{engine: r.engine}
	ctx := context.WithValue(graphql.WithOperationContext(r.ctx, r.operationOf(set)), marksKey{}, m)
	ctx = loader.With(ctx, r.engine.svc, r.caller, r.engine.wait)
	res := r.engine.core.Exec(ctx)(ctx)
	if res == nil {
		return
	}
	for _, err := range res.Errors {
		graphql.AddError(r.ctx, err)
	}
	var found []markedField
	for i := range fields {
		f := &fields[i]
		if f.op != opCore {
			continue
		}
		if v := gjson.GetBytes(res.Data, gjson.Escape(f.alias)); v.Exists() {
			answers[i].core = []byte(v.Raw)
		}
		if len(m.list) > 0 && bytes.Contains(answers[i].core, []byte(markBegin)) {
			answers[i].marks = m
			found = r.marked(found, m, f, f.node.Definition.Type, gjson.ParseBytes(answers[i].core))
		}
	}
	r.readMarks(found)
}

// operationOf is the operation of a run with other root fields.
func (r *run) operationOf(set ast.SelectionSet) *graphql.OperationContext {
	operation := *r.oc.Operation
	operation.SelectionSet = set
	return &graphql.OperationContext{
		RawQuery: r.oc.RawQuery, Variables: r.oc.Variables, OperationName: r.oc.OperationName, Doc: r.oc.Doc, Operation: &operation,
		Extensions: r.oc.Extensions, Headers: r.oc.Headers, DisableIntrospection: r.oc.DisableIntrospection, RecoverFunc: r.oc.RecoverFunc,
		ResolverMiddleware: r.oc.ResolverMiddleware, RootResolverMiddleware: r.oc.RootResolverMiddleware, Stats: r.oc.Stats,
	}
}

// markedField is a mark and the field whose value it is.
type markedField struct {
	mark  *mark
	field *field
}

// markOf is the mark that a value is, nil if it is another value.
func (m *marks) markOf(v gjson.Result) *mark {
	if !v.IsObject() || len(v.Raw) < len(markBegin) || v.Raw[:len(markBegin)] != markBegin {
		return nil
	}
	n, err := strconv.Atoi(v.Raw[len(markBegin) : len(v.Raw)-1])
	if err != nil || n < 0 || n >= len(m.list) {
		return nil
	}
	return &m.list[n]
}

// marked finds the marks in a value of the core.
func (r *run) marked(out []markedField, m *marks, f *field, t *ast.Type, v gjson.Result) []markedField {
	switch {
	case t.Elem != nil:
		v.ForEach(func(_, e gjson.Result) bool {
			out = r.marked(out, m, f, t.Elem, e)
			return true
		})
	case m.markOf(v) != nil:
		out = append(out, markedField{m.markOf(v), f})
	case f.sub != nil && v.IsObject():
		for i := range f.sub.fields {
			below := &f.sub.fields[i]
			if below.op == opCore {
				out = r.marked(out, m, below, below.node.Definition.Type, v.Get(gjson.Escape(below.alias)))
			}
		}
	}
	return out
}

// readMarks reads the resources of which resolvers gave the keys, in one call,
// and notes the links of all.
func (r *run) readMarks(found []markedField) {
	var keys []backend.Key
	for _, at := range found {
		if ref := at.mark.ref; ref != nil && ref.resource == nil {
			keys = append(keys, ref.key)
		}
	}
	var read []*service.Resource
	if len(keys) > 0 {
		var err error
		if read, err = r.engine.svc.Lookup(r.ctx, r.caller, keys); err != nil {
			r.report(err, nil, nil)
			read = make([]*service.Resource, len(keys))
		}
	}
	for _, at := range found {
		if at.mark.page != nil {
			at.mark.made = r.newPage(at.mark.page, at.field)
			continue
		}
		res := at.mark.ref.resource
		if res == nil {
			res, read = read[0], read[1:]
		}
		if b := bodyOf(res); b != nil {
			at.mark.item = r.newItem(b, at.field)
		}
	}
}

// errNull is the error of a value that must not be null and is.
var errNull = errors.New("must not be null")

// coreValue writes a value of the core, in which marks stand for resources and
// pages. Null propagates to the nearest value around it that may be null.
func (r *run) coreValue(buf []byte, m *marks, f *field, t *ast.Type, v gjson.Result) ([]byte, bool) {
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
			r.pushIndex(i)
			at := len(buf)
			var some bool
			if buf, some = r.coreValue(buf, m, f, t.Elem, e); !some {
				buf = append(buf[:at], "null"...)
				ok = ok && !t.Elem.NonNull
			}
			r.pop()
		}
		return append(buf, ']'), ok
	}
	if mark := m.markOf(v); mark != nil {
		return r.markedValue(buf, f, t, mark)
	}
	if f.sub == nil || !v.IsObject() {
		return append(buf, v.Raw...), true
	}
	return r.coreObject(buf, m, f.sub, v)
}

func (r *run) coreObject(buf []byte, m *marks, o *object, v gjson.Result) ([]byte, bool) {
	if len(o.fields) == 0 { // all are skipped
		return append(buf, "{}"...), true
	}
	ok := true
	for i := range o.fields {
		f := &o.fields[i]
		buf = append(buf, f.prefix...)
		at := len(buf)
		some := f.op == opConst
		if some {
			buf = append(buf, f.constant...)
		} else {
			r.push(f)
			buf, some = r.coreValue(buf, m, f, f.node.Definition.Type, v.Get(gjson.Escape(f.alias)))
			r.pop()
		}
		if !some {
			buf = append(buf[:at], "null"...)
			ok = ok && !f.nonNull
		}
	}
	return append(buf, '}'), ok
}

// markedValue writes what a resolver left to the engine. The path has the field already.
func (r *run) markedValue(buf []byte, f *field, t *ast.Type, v *mark) ([]byte, bool) {
	switch {
	case v.made != nil:
		for i := range v.made.items {
			v.made.items[i].at = 0
		}
		return r.object(buf, f.sub, &source{page: v.made})
	case v.item != nil:
		v.item.at = 0
		return r.object(buf, f.on(v.item.kind), &source{item: v.item})
	case t.NonNull:
		r.report(errNull, f, nil)
	}
	return buf, false
}
