package engine

import (
	"context"
	"errors"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/body"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/query"
	"github.com/sluicegw/sluice/internal/slab"
)

// run is one execution of a plan. It is used by one goroutine. See the package comment.
type run struct {
	engine *Engine
	oc     *graphql.OperationContext
	plan   *plan
	// buf is the buffer of the answer. The next operation that uses the run uses it again.
	buf  []byte
	path []step
	// level has the selections whose links are being read, and next the selections of the following level.
	level, next []visit
	// wanted are the links of level that must be read.
	wanted []want
	// The slabs allocate links, pages and items many at a time, because a level may have hundreds.
	linkSlab slab.Slab[link]
	pageSlab slab.Slab[connectionPage]
	itemSlab slab.Slab[item]
	// nameSlab allocates the names in lists of references.
	nameSlab slab.Slab[string]
	// answers are the values of the root fields.
	answers []resolved
	// spareRequests is memory for the requests of the next level; measured by BenchmarkGraph of graph/server,
	// three-levels.
	spareRequests pageRequests
	// found maps the key of each resource that was read to its body; nil if it was absent.
	found map[backend.Key]*body.Body
	// sharedItems has the items of referenced resources; see shared.
	sharedItems map[itemKey]*item
	// snapshot is the state from which everything is read.
	snapshot *query.Snapshot
	// args has the arguments that contain variables, after their coercion.
	args    map[*field]*arguments
	scratch []byte
	spent   spending
	// manifests are the last two manifests that were rendered.
	manifests [2]manifest
	// applied reports whether the current root field of a mutation has made a change, so that its errors get the
	// outcome APPLIED.
	applied bool
	// traced reports whether the operation has a span.
	traced bool
	// ended is the reason why the remaining root fields of a mutation are not executed; nil if they are.
	ended error
}

// step is a step of a path: a field, or an index if field is nil.
type step struct {
	field *field
	index int
}

// item is a resource in the answer, with the links that its selection needs, in the order in which they are written.
type item struct {
	body  *body.Body
	kind  *kindInfo
	links []link
	// at is the index of the link to be written next.
	at int
}

type itemKey struct {
	on   *object
	body *body.Body
}

// link is what was read for a field: the resource that a reference names, or the page of a connection.
type link struct {
	item *item
	page *connectionPage
	err  error
}

// connectionPage is a page of a connection with its items.
type connectionPage struct {
	*query.Page
	items []item
}

// visit is an item, with a selection on it that contains links to read.
type visit struct {
	item *item
	on   *object
}

// bodyOf returns the body of a resource, which may be nil.
func bodyOf(r *query.Resource) *body.Body {
	if r == nil {
		return nil
	}
	return r.Body
}

func (r *run) kindOf(b *body.Body) *kindInfo { return r.engine.types[b.Stored.Kind].kind }

// newItem returns an item for a resource, and adds its selection to the next level.
func (r *run) newItem(b *body.Body, f *field) *item {
	it := r.itemSlab.One()
	it.body, it.kind = b, r.kindOf(b)
	r.enqueue(it, f.on(it.kind))
	return it
}

// enqueue adds a selection to the next level, unless it has no links.
func (r *run) enqueue(it *item, on *object) {
	if len(on.links) > 0 {
		r.next = append(r.next, visit{it, on})
	}
}

// newPage returns a page with items, and adds their selections to the next level.
func (r *run) newPage(p *query.Page, f *field) *connectionPage {
	out := r.pageSlab.One()
	*out = connectionPage{Page: p, items: r.itemSlab.Take(len(p.Edges))}
	for i := range p.Edges {
		b := p.Edges[i].Resource.Body
		if b == nil { // the resource of a dependency
			continue
		}
		it := &out.items[i]
		it.body, it.kind = b, r.kindOf(b)
		// If the selection has both nodes and edges, an item has the links of both, in the order in which they are
		// written.
		for _, l := range f.sub.links {
			if !l.edges {
				r.enqueueNode(it, l, p.Dependencies != nil)
				continue
			}
			for _, node := range l.sub.links {
				r.enqueueNode(it, node, p.Dependencies != nil)
			}
		}
	}
	return out
}

// enqueueNode adds the selection on a node to the next level. The node is the item itself, or a dependency whose
// resource is the item.
func (r *run) enqueueNode(it *item, node *field, dependency bool) {
	if !dependency {
		r.enqueue(it, node.on(it.kind))
		return
	}
	for _, resource := range node.sub.links {
		r.enqueue(it, resource.on(it.kind))
	}
}

// arguments returns the arguments of a field. They are coerced once for all places in which the field occurs.
func (r *run) arguments(ctx context.Context, f *field) (map[string]any, error) {
	a := r.evaluated(ctx, f)
	return a.values, a.err
}

// evaluated returns the arguments of a field. Coercing them is charged once for each operation, in advance.
func (r *run) evaluated(ctx context.Context, f *field) *arguments {
	if f.args != nil && f.args.steps == 0 {
		return f.args
	}
	if a := r.args[f]; a != nil {
		return a
	}
	a := f.args
	if a != nil {
		r.charge(f, a.steps)
	} else {
		a = r.coerced(ctx, f)
	}
	if r.args == nil {
		r.args = map[*field]*arguments{}
	}
	r.args[f] = a
	return a
}

// coerced returns the coerced arguments of a field that uses variables.
func (r *run) coerced(ctx context.Context, f *field) *arguments {
	a := &arguments{values: map[string]any{}}
	r.engine.read(a, f.node, r.oc.Variables, func(name string, v any) {
		size := sizeOf(v)
		r.charge(f, size.steps(name))
		r.spent.inputs += size.held()
		r.hold(ctx, f, r.spent.budget.Hold(ctx, size.held()))
	})
	a.ask(f)
	return a
}

// forget makes later reads of the run see a new state of the store.
func (r *run) forget() {
	r.snapshot.Forget()
	clear(r.found)
	clear(r.sharedItems)
}

func (r *run) push(f *field)   { r.path = append(r.path, step{field: f}) }
func (r *run) pushIndex(i int) { r.path = append(r.path, step{index: i}) }
func (r *run) pop()            { r.path = r.path[:len(r.path)-1] }

// failed adds an error of a field to the answer. If the error means that the run cannot go on, failed halts it.
func (r *run) failed(ctx context.Context, err error, f *field) {
	r.haltOn(ctx, err, f)
	r.reportAll(ctx, err, f)
}

// reportAll adds the error of a field to the answer. An error with violations becomes one error for each.
func (r *run) reportAll(ctx context.Context, err error, f *field) {
	r.push(f)
	defer r.pop()
	var argument *argumentError
	var known *failure.Error
	if errors.As(err, &argument) || !errors.As(err, &known) {
		r.report(ctx, err, f, nil)
		return
	}
	for _, one := range known.Split() {
		r.report(ctx, one, f, nil)
	}
}

// report adds an error of a field to the answer. Its path is the current path followed by rest. If it is about an
// argument, its extensions have the path of the value.
func (r *run) report(ctx context.Context, err error, f *field, rest ast.Path) {
	out := &gqlerror.Error{Message: err.Error(), Path: append(r.where(), rest...), Locations: f.locations()}
	var argument *argumentError
	var known *failure.Error
	switch {
	case errors.As(err, &argument):
		out.Extensions, err = placed(argument.path), argument.err
	case errors.As(err, &known):
		out.Extensions = placed(r.inEntries(f, inArguments(f, known.Path), known.Rule))
	}
	out.Err = err
	if r.applied {
		if out.Extensions == nil {
			out.Extensions = map[string]any{}
		}
		out.Extensions["outcome"] = failure.OutcomeApplied
	}
	r.countError(out)
	graphql.AddError(ctx, out)
}

// where returns the current path in the answer.
func (r *run) where() ast.Path {
	out := make(ast.Path, 0, len(r.path)+2)
	for _, s := range r.path {
		if s.field != nil {
			out = append(out, ast.PathName(s.field.alias))
		} else {
			out = append(out, ast.PathIndex(s.index))
		}
	}
	return out
}
