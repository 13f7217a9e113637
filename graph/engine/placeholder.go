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

type placeholdersKey struct{}

func placeholdersFrom(ctx context.Context) *placeholders {
	m, _ := ctx.Value(placeholdersKey{}).(*placeholders)
	return m
}

// placeholders are the values that resolvers of an operation have left to the engine.
type placeholders struct {
	engine *Engine
	mu     sync.Mutex // guards list
	list   []placeholder
}

type placeholder struct {
	ref  *Ref
	page *query.Page
	// item or made is the value, after it was read. If there is no value, err is the reason.
	item *item
	made *connectionPage
	err  error
}

// kinds returns the kinds of the resources that a placeholder stands for.
func (v *placeholder) kinds() []string {
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

// placeholderPrefix begins a placeholder in an answer of the core, such as {"$":3}. No field of the API has the name $.
const placeholderPrefix = `{"$":`

// writePlaceholder writes a placeholder for a value that the engine will write.
func writePlaceholder(ctx context.Context, w io.Writer, v placeholder) error {
	m := placeholdersFrom(ctx)
	if m == nil {
		return errors.New("engine: a reference outside an operation of the engine")
	}
	m.mu.Lock()
	n := len(m.list)
	m.list = append(m.list, v)
	m.mu.Unlock()
	_, err := io.WriteString(w, placeholderPrefix+strconv.Itoa(n)+"}")
	return err
}

// placeholderField is a placeholder with the field whose value it is.
type placeholderField struct {
	placeholder *placeholder
	field       *field
}

// placeholderOf returns the placeholder that a value of the core represents; nil if it represents none.
func (m *placeholders) placeholderOf(v gjson.Result) *placeholder {
	if !v.IsObject() || len(v.Raw) < len(placeholderPrefix) || v.Raw[:len(placeholderPrefix)] != placeholderPrefix {
		return nil
	}
	n, err := strconv.Atoi(v.Raw[len(placeholderPrefix) : len(v.Raw)-1])
	if err != nil || n < 0 || n >= len(m.list) {
		return nil
	}
	return &m.list[n]
}

// collectPlaceholders appends the placeholders in a value of the core, which has type t.
func (r *run) collectPlaceholders(
	out []placeholderField, m *placeholders, f *field, t *ast.Type, v gjson.Result,
) []placeholderField {
	if t.Elem != nil {
		v.ForEach(func(_, e gjson.Result) bool {
			out = r.collectPlaceholders(out, m, f, t.Elem, e)
			return true
		})
		return out
	}
	if f.sub == nil && f.abstract == nil || !v.IsObject() {
		return out
	}
	if placeholder := m.placeholderOf(v); placeholder != nil {
		return append(out, placeholderField{placeholder, f})
	}
	o := f.onCore(v)
	for i := range o.fields {
		if below := &o.fields[i]; below.byCore {
			out = r.collectPlaceholders(out, m, below, below.node.Definition.Type, v.Get(gjson.Escape(below.alias)))
		}
	}
	return out
}

// readPlaceholders reads all resources that resolvers returned as keys, in one call. It adds the resources of all
// placeholders to the next level.
func (r *run) readPlaceholders(ctx context.Context, found []placeholderField) {
	for _, at := range found {
		at.placeholder.err = r.checkPlaceholder(at)
		if ref := at.placeholder.ref; at.placeholder.err == nil && ref != nil {
			// A resource that a resolver has read is used for the whole answer, so that all of it shows the same state.
			if b := bodyOf(ref.resource); b != nil && r.claim(b.Stored.Key) {
				r.found[b.Stored.Key] = b
			}
		}
	}
	var keys []backend.Key
	for _, at := range found {
		ref := at.placeholder.ref
		if at.placeholder.err == nil && ref != nil && ref.resource == nil && r.claim(ref.key) {
			keys = append(keys, ref.key)
		}
	}
	var failed error
	if len(keys) > 0 {
		var read []*query.Resource
		read, failed = r.engine.svc.Reader.Lookup(ctx, keys)
		for i, res := range read {
			r.found[keys[i]] = bodyOf(res)
		}
	}
	for _, at := range found {
		r.haltOn(ctx, failed, at.field)
		switch m := at.placeholder; {
		case m.err != nil:
		case m.page != nil:
			m.made = r.newPage(m.page, at.field)
		case m.ref.resource != nil:
			m.item = r.placeholderItem(at.field, bodyOf(m.ref.resource))
		default:
			m.item = r.placeholderItem(at.field, r.found[m.ref.key])
			if m.item == nil {
				m.err = failed
			}
		}
	}
	if failed != nil {
		r.forgetAbsent()
	}
}

func (r *run) placeholderItem(f *field, b *body.Body) *item {
	if b == nil {
		return nil
	}
	return r.shared(f, r.kindOf(b), b)
}

// checkPlaceholder returns an error if the type of a field does not allow the resources of its placeholder.
func (r *run) checkPlaceholder(at placeholderField) error {
	typ := at.field.node.Definition.Type.Name()
	wanted := r.engine.types[typ] // nil for an interface
	for _, name := range at.placeholder.kinds() {
		switch t := r.engine.types[name]; {
		case t == nil || t.role != roleResource:
			return fmt.Errorf("engine: a resolver returned a resource of kind %q, which is not known", name)
		case wanted != nil && wanted.kind != nil && wanted.kind.Name != name:
			return fmt.Errorf("engine: a resolver returned a %s where %s is wanted", name, typ)
		}
	}
	return nil
}

// errNull means that a value is null although the schema does not allow null.
var errNull = errors.New("must not be null")

// placeholderValue writes the value of a placeholder. The field has been added to the current path.
func (r *run) placeholderValue(ctx context.Context, buf []byte, f *field, t *ast.Type, v *placeholder) ([]byte, bool) {
	switch {
	case v.made != nil:
		for i := range v.made.items {
			v.made.items[i].at = 0
		}
		return r.object(ctx, buf, f.sub, source{page: v.made})
	case v.item != nil:
		r.count(f, 1)
		v.item.at = 0
		return r.object(ctx, buf, f.on(v.item.kind), source{item: v.item})
	case v.err != nil:
		r.report(ctx, v.err, f, nil)
	case t.NonNull:
		r.report(ctx, errNull, f, nil)
	}
	return buf, false
}
