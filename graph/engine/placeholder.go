package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"

	"github.com/tidwall/gjson"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/body"
	"github.com/sluicegw/sluice/backend/service/query"
)

type marksKey struct{}

func marksFrom(ctx context.Context) *marks {
	m, _ := ctx.Value(marksKey{}).(*marks)
	return m
}

// marks are the values that the resolvers of an operation leave to the engine.
type marks struct {
	engine *Engine
	mu     sync.Mutex // guards list
	list   []mark
}

type mark struct {
	ref  *Ref
	page *query.Page
	// item or made is the value once it is read, err why it cannot be shown.
	item *item
	made *page
	err  error
}

// kinds returns the kinds of the resources of a mark.
func (v *mark) kinds() []string {
	switch {
	case v.page != nil:
		var out []string
		for i := range v.page.Edges {
			out = append(out, v.page.Edges[i].Resource.Stored.Kind)
		}
		return out
	case v.ref.resource != nil:
		return []string{v.ref.resource.Stored.Kind}
	}
	return []string{v.ref.key.Kind}
}

// markBegin begins a mark in the core's answer: {"$":3}. No other object has a field named $.
const markBegin = `{"$":`

// writeMark writes a mark in place of a value.
func writeMark(ctx context.Context, w io.Writer, v mark) error {
	m := marksFrom(ctx)
	if m == nil {
		return errors.New("engine: a reference outside an operation of the engine")
	}
	m.mu.Lock()
	n := len(m.list)
	m.list = append(m.list, v)
	m.mu.Unlock()
	_, err := io.WriteString(w, markBegin+strconv.Itoa(n)+"}")
	return err
}

// markedField is a mark and its field.
type markedField struct {
	mark  *mark
	field *field
}

// markOf returns the mark that a value is, nil if it is none.
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

// marked appends the marks in a value of the core.
func (r *run) marked(out []markedField, m *marks, f *field, t *ast.Type, v gjson.Result) []markedField {
	if t.Elem != nil {
		v.ForEach(func(_, e gjson.Result) bool {
			out = r.marked(out, m, f, t.Elem, e)
			return true
		})
		return out
	}
	if f.sub == nil && f.abstract == nil || !v.IsObject() {
		return out
	}
	if mark := m.markOf(v); mark != nil {
		return append(out, markedField{mark, f})
	}
	o := f.onCore(v)
	for i := range o.fields {
		if below := &o.fields[i]; below.byCore {
			out = r.marked(out, m, below, below.node.Definition.Type, v.Get(gjson.Escape(below.alias)))
		}
	}
	return out
}

// readMarks reads the resources of which resolvers returned the keys, in one call,
// and adds all resources to the next level.
func (r *run) readMarks(found []markedField) {
	for _, at := range found {
		at.mark.err = r.checkMark(at)
		if ref := at.mark.ref; at.mark.err == nil && ref != nil {
			// A resource that a resolver has read is not read again, so that the answer shows one state of it.
			if b := bodyOf(ref.resource); b != nil && r.claim(b.Stored.Key) {
				r.found[b.Stored.Key] = b
			}
		}
	}
	var keys []backend.Key
	for _, at := range found {
		if ref := at.mark.ref; at.mark.err == nil && ref != nil && ref.resource == nil && r.claim(ref.key) {
			keys = append(keys, ref.key)
		}
	}
	var failed error
	if len(keys) > 0 {
		var read []*query.Resource
		read, failed = r.engine.svc.Lookup(r.ctx, keys)
		for i, res := range read {
			r.found[keys[i]] = bodyOf(res)
		}
	}
	for _, at := range found {
		r.haltOn(failed, at.field)
		switch m := at.mark; {
		case m.err != nil:
		case m.page != nil:
			m.made = r.newPage(m.page, at.field)
		case m.ref.resource != nil:
			m.item = r.markedItem(at.field, bodyOf(m.ref.resource))
		default:
			m.item = r.markedItem(at.field, r.found[m.ref.key])
			if m.item == nil {
				m.err = failed
			}
		}
	}
	if failed != nil {
		r.forgetAbsent()
	}
}

func (r *run) markedItem(f *field, b *body.Body) *item {
	if b == nil {
		return nil
	}
	return r.shared(f, r.kindOf(b), b)
}

// checkMark returns the error of a resource that cannot be a value of its field.
func (r *run) checkMark(at markedField) error {
	typ := at.field.node.Definition.Type.Name()
	wanted := r.engine.types[typ] // nil for an interface
	for _, name := range at.mark.kinds() {
		switch t := r.engine.types[name]; {
		case t == nil || t.role != roleResource:
			return fmt.Errorf("engine: a resolver returned a resource of kind %q, which is not known", name)
		case wanted != nil && wanted.kind != nil && wanted.kind.Name != name:
			return fmt.Errorf("engine: a resolver returned a %s where %s is wanted", name, typ)
		}
	}
	return nil
}

// errNull is the error of null where the schema does not allow it.
var errNull = errors.New("must not be null")

// markedValue writes the value of a mark. The path has the field already.
func (r *run) markedValue(buf []byte, f *field, t *ast.Type, v *mark) ([]byte, bool) {
	switch {
	case v.made != nil:
		for i := range v.made.items {
			v.made.items[i].at = 0
		}
		return r.object(buf, f.sub, source{page: v.made})
	case v.item != nil:
		r.count(f, 1)
		v.item.at = 0
		return r.object(buf, f.on(v.item.kind), source{item: v.item})
	case v.err != nil:
		r.report(v.err, f, nil)
	case t.NonNull:
		r.report(errNull, f, nil)
	}
	return buf, false
}
