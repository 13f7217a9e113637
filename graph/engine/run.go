package engine

import (
	"context"
	"errors"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/body"
	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/query"
	"github.com/sluicegw/sluice/internal/slab"
)

// run is one execution of a plan, see the package comment. One goroutine uses it.
type run struct {
	engine *Engine
	oc     *graphql.OperationContext
	plan   *plan
	// buf is the buffer of the answer, which the next run reuses.
	buf  []byte
	path []step
	// level are the selections whose links are being read, next those of the level after.
	level, next []visit
	// wanted are the links of level that have to be read.
	wanted []want
	// The slabs allocate many links, pages and items at once: a level may have hundreds.
	linkSlab slab.Slab[link]
	pageSlab slab.Slab[connectionPage]
	itemSlab slab.Slab[item]
	// nameSlab has the names in lists of references.
	nameSlab slab.Slab[string]
	// answers are the values of the root fields.
	answers []resolved
	// spareRequests is memory for the requests of a level: see BenchmarkGraph of graph/server, three-levels.
	spareRequests pageRequests
	// found are the resources that were read by their keys, nil for absent ones.
	found map[backend.Key]*body.Body
	// sharedItems are the items of references: all that show a resource with one selection share one.
	sharedItems map[itemKey]*item
	// snapshot is the state of the store that all reads see.
	snapshot *query.Snapshot
	// args are the arguments that have variables, evaluated once.
	args    map[*field]*arguments
	scratch []byte
	spent   spending
	// manifests are the two manifests that were rendered last.
	manifests [2]manifest
	// applied reports whether the current root field of a mutation has changed something. Then its
	// errors have the outcome APPLIED.
	applied bool
	// traced reports whether the operation has a span.
	traced bool
	// ended is the reason why the remaining root fields of a mutation are not executed.
	ended error
}

// step of a path: a field, or an index if field is nil.
type step struct {
	field *field
	index int
}

// item is a resource in the answer, with the links of its selection in the order in which they are written.
type item struct {
	body  *body.Body
	kind  *kindInfo
	links []link
	// at is the link that is written next.
	at int
}

type itemKey struct {
	on   *object
	body *body.Body
}

// link is the resource of a reference or the page of a connection.
type link struct {
	item *item
	page *connectionPage
	err  error
}

// connectionPage is a page of a connection.
type connectionPage struct {
	*query.Page
	items []item
}

// visit is a selection on an item whose links will be read.
type visit struct {
	item *item
	on   *object
}

// bodyOf returns the body of a resource, nil for none.
func bodyOf(r *query.Resource) *body.Body {
	if r == nil {
		return nil
	}
	return r.Body
}

// kindOf returns the kind of a resource.
func (r *run) kindOf(b *body.Body) *kindInfo { return r.engine.types[b.Stored.Kind].kind }

// newItem returns an item, and adds it to the next level.
func (r *run) newItem(b *body.Body, f *field) *item {
	it := r.itemSlab.One()
	it.body, it.kind = b, r.kindOf(b)
	r.enqueue(it, f.on(it.kind))
	return it
}

// enqueue adds a selection with links to the next level.
func (r *run) enqueue(it *item, on *object) {
	if len(on.links) > 0 {
		r.next = append(r.next, visit{it, on})
	}
}

// newPage returns a page, and adds its items to the next level.
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
		// An item has the links of nodes and of edges, in the order in which they are written.
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

// enqueueNode adds the resource of a node to the next level. The node is the item itself or, if
// dependency is set, a dependency with the item as its resource.
func (r *run) enqueueNode(it *item, node *field, dependency bool) {
	if !dependency {
		r.enqueue(it, node.on(it.kind))
		return
	}
	for _, resource := range node.sub.links {
		r.enqueue(it, resource.on(it.kind))
	}
}

// arguments returns the arguments of a field, evaluated once for all its places in the answer.
func (r *run) arguments(ctx context.Context, f *field) (map[string]any, error) {
	a := r.evaluated(ctx, f)
	return a.values, a.err
}

// evaluated returns the arguments of a field. They are charged once for each operation,
// before they are coerced.
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

// coerced returns the arguments of a field with the variables that are in them.
func (r *run) coerced(ctx context.Context, f *field) *arguments {
	a := &arguments{values: map[string]any{}}
	r.engine.read(a, f.node, r.oc.Variables, func(name string, v any) {
		values, texts := inputSize(v)
		r.charge(f, inputSteps(name, values, texts))
		r.spent.inputs += values * budget.InputHeld
		r.hold(ctx, f, r.spent.budget.Hold(ctx, values*budget.InputHeld))
	})
	a.ask(f)
	return a
}

// forget makes later reads use a new state of the store.
func (r *run) forget() {
	r.snapshot.Forget()
	clear(r.found)
	clear(r.sharedItems)
}

func (r *run) push(f *field)   { r.path = append(r.path, step{field: f}) }
func (r *run) pushIndex(i int) { r.path = append(r.path, step{index: i}) }
func (r *run) pop()            { r.path = r.path[:len(r.path)-1] }

// failed adds an error of a field to the answer, or halts.
func (r *run) failed(ctx context.Context, err error, f *field) {
	r.haltOn(ctx, err, f)
	r.reportAll(ctx, err, f)
}

// reportAll adds an error of a field to the answer, one for each violation.
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

// report adds an error of a field to the answer, at the current path followed by rest. If the error
// is about an argument, its extensions have the path of the value.
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

// where returns the current path.
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
