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
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/query"
	"github.com/sluicegw/sluice/graph/loader"
	"github.com/sluicegw/sluice/internal/slab"
)

// run is one execution of a plan, see the package comment. One goroutine uses it. Its memory is used
// again, see pool.go.
type run struct {
	engine *Engine
	ctx    context.Context
	oc     *graphql.OperationContext
	plan   *plan
	caller access.Caller
	// buf is the memory of the answer between two runs.
	buf  []byte
	path []step
	// level are the items whose links are read now, next those of the next level.
	level, next []visit
	// wanted are the links of level that have to be read.
	wanted []want
	// The slabs hold the links, pages and items in few allocations: a level may have hundreds.
	linkSlab slab.Slab[link]
	pageSlab slab.Slab[page]
	itemSlab slab.Slab[item]
	// nameSlab holds the names in lists of references.
	nameSlab slab.Slab[string]
	// answers are the resolved root fields.
	answers []resolved
	// spareRequests is memory for the requests of the next level.
	spareRequests pageRequests
	// found are the resources that were read by key: nil if there is none, or if it is being read.
	found map[backend.Key]*body.Body
	// kind is the kind of the last resource, a cache of kindOf.
	kind *kindInfo
	// sharedItems are the items of resources that references led to. All references that show a
	// resource with one selection share its item.
	sharedItems map[itemKey]*item
	// moment is the state of the store that all reads see until it is forgotten.
	moment *query.Moment
	// args are the arguments with variables, evaluated once.
	args map[*field]*arguments
	// spareArguments are arguments of earlier runs, whose memory is used again.
	spareArguments []*arguments
	scratch        []byte
	spent          spending
	// manifests are those that were rendered last, of two formats.
	manifests [2]manifest
	// applied means that the current root field of a mutation has changed something. Errors in its
	// answer say so.
	applied bool
	// ended is the reason why no further root field of a mutation is executed.
	ended error
}

// step is a step of a path: a field, or an index if field is nil.
type step struct {
	field *field
	index int
}

// item is a resource in the answer, with the links that its selection has in
// the order in which they are met.
type item struct {
	body  *body.Body
	kind  *kindInfo
	links []link
	// at is the index of the link that is written next.
	at int
}

// itemKey identifies an item that several references share.
type itemKey struct {
	on   *object
	body *body.Body
}

// link is the result of a reference or a connection: an item, a page or an error; none of them if the
// reference leads nowhere.
type link struct {
	item *item
	page *page
	err  error
}

// page is a page of a connection. items are parallel to its edges.
type page struct {
	*query.Page
	items []item
}

// visit is an item and a selection on it that has links to be read.
type visit struct {
	item *item
	on   *object
}

// reads returns the batch reads of the service for the run's caller.
func (r *run) reads() loader.Reads { return loader.Reads{Service: r.engine.svc, Caller: r.caller} }

// bodyOf returns the body of a resource, nil if there is none.
func bodyOf(r *query.Resource) *body.Body {
	if r == nil {
		return nil
	}
	return r.Body
}

// kindOf returns the kind of a resource, which is mostly the kind of the resource before.
func (r *run) kindOf(b *body.Body) *kindInfo {
	if name := b.Stored.Kind; r.kind == nil || name != r.kind.Name {
		r.kind = r.engine.types[name].kind
	}
	return r.kind
}

// newItem returns an item and enqueues it for the reading of its links.
func (r *run) newItem(b *body.Body, f *field) *item {
	it := r.itemSlab.One()
	it.body, it.kind = b, r.kindOf(b)
	r.enqueue(it, f.on(it.kind))
	return it
}

// enqueue notes that the links of a selection on an item are to be read with the next level.
func (r *run) enqueue(it *item, on *object) {
	if len(on.links) > 0 {
		r.next = append(r.next, visit{it, on})
	}
}

// newPage returns a page and enqueues its items for the reading of the links below nodes and edges.
func (r *run) newPage(p *query.Page, f *field) *page {
	out := r.pageSlab.One()
	*out = page{Page: p, items: r.itemSlab.Take(len(p.Edges))}
	if p.Dependencies != nil {
		r.enqueueOthers(out, f)
		return out
	}
	for i := range p.Edges {
		it := &out.items[i]
		it.body = p.Edges[i].Resource.Body
		it.kind = r.kindOf(it.body)
		// A resource that is shown by nodes and by edges has the links of both, in
		// the order in which they are written.
		for _, l := range f.sub.links {
			switch l.op {
			case opNodes:
				r.enqueue(it, l.on(it.kind))
			case opEdges:
				for _, node := range l.sub.links {
					r.enqueue(it, node.on(it.kind))
				}
			}
		}
	}
	return out
}

// arguments returns the arguments of a field, which are evaluated once for all its places in the answer.
func (r *run) arguments(f *field) (map[string]any, error) {
	a := r.evaluated(f)
	return a.values, a.err
}

// evaluated returns the arguments of a field with what was made of them. An operation pays for them once,
// before they are coerced.
func (r *run) evaluated(f *field) *arguments {
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
		a = r.coerced(f)
	}
	if r.args == nil {
		r.args = map[*field]*arguments{}
	}
	r.args[f] = a
	return a
}

// coerced evaluates the arguments of a field that has variables in them.
func (r *run) coerced(f *field) (a *arguments) {
	if n := len(r.spareArguments) - 1; n >= 0 {
		a, r.spareArguments = r.spareArguments[n], r.spareArguments[:n]
	} else {
		a = &arguments{values: map[string]any{}}
	}
	r.engine.coerceInto(a, f.node, r.oc.Variables, func(name string, v any) {
		values, texts := inputSize(v)
		r.charge(f, inputSteps(name, values, texts))
		r.spent.inputs += values * budget.InputHeld
		r.hold(f, r.spent.budget.Hold(r.ctx, values*budget.InputHeld))
	})
	a.ask(f)
	return a
}

// forget drops everything that was read, so that the next root field of a mutation reads again.
func (r *run) forget() {
	r.moment.Forget()
	clear(r.found)
	clear(r.sharedItems)
}

func (r *run) push(f *field)   { r.path = append(r.path, step{field: f}) }
func (r *run) pushIndex(i int) { r.path = append(r.path, step{index: i}) }
func (r *run) pop()            { r.path = r.path[:len(r.path)-1] }

// failed reports an error of a field, whose value is null then. It halts if the run must not go on.
func (r *run) failed(err error, f *field) {
	r.haltOn(err, f)
	r.reportEach(err, f)
}

// reportEach reports an error of a field, an error with several violations as one error of the answer
// for each.
func (r *run) reportEach(err error, f *field) {
	r.push(f)
	defer r.pop()
	var argument *argumentError
	var known *failure.Error
	if errors.As(err, &argument) || !errors.As(err, &known) {
		r.report(err, f, nil)
		return
	}
	for _, one := range known.Split() {
		r.report(renamed(f, one), f, nil)
	}
}

// report adds an error to the answer, at the current path followed by rest. If it is about a value in the
// arguments of f, its extensions have the path of the value.
func (r *run) report(err error, f *field, rest ast.Path) {
	out := &gqlerror.Error{Message: err.Error(), Path: append(r.where(), rest...)}
	var argument *argumentError
	var known *failure.Error
	switch {
	case errors.As(err, &argument):
		out.Extensions, err = placed(steps(argument.path)), argument.err
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
	if f.location.Line > 0 {
		out.Locations = []gqlerror.Location{f.location}
	}
	r.chargeError(out)
	graphql.AddError(r.ctx, out)
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
