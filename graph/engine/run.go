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

// run is one execution of a plan. One goroutine uses it.
type run struct {
	engine *Engine
	ctx    context.Context
	oc     *graphql.OperationContext
	plan   *plan
	caller access.Caller
	// buf is the memory of the answer between two runs.
	buf  []byte
	path []step
	// level are the selections whose links are read now, next those after them.
	level, next []visit
	wanted      []want
	// links and pages are pieces of few chunks: a level may have hundreds.
	links slab.Slab[link]
	pages slab.Slab[page]
	parts slab.Slab[item]
	// names are those in lists of references.
	names slab.Slab[string]
	// answers are what the root fields were resolved to.
	answers []resolved
	// asked is room for the requests of a level.
	asked pageRequests
	// found are the resources that references led to, nil for none.
	found map[backend.Key]*body.Body
	// kind is that of the resource which was shown last.
	kind *kindInfo
	// items are those of references, by selection and resource.
	items map[itemKey]*item
	// moment is the state of the store that all reads see until it is forgotten.
	moment *query.Moment
	// args are the arguments with variables, evaluated once.
	args map[*field]*arguments
	// spare are arguments of earlier runs, whose memory is used again.
	spare   []*arguments
	scratch []byte
	spent   spending
	// manifests are those that were rendered last, of two formats.
	manifests [2]manifest
	// applied says that the root field of a mutation has changed something: what is
	// wrong with the answer to it is told with that.
	applied bool
	// ended is why no further root field of a mutation is executed.
	ended error
}

// step of a path: a field, or an index where that is nil.
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
	// at is the link that is written next.
	at int
}

type itemKey struct {
	on   *object
	body *body.Body
}

// link is what a reference or a connection led to.
type link struct {
	item *item
	page *page
	err  error
}

// page is a page of a connection.
type page struct {
	*query.Page
	items []item
}

// visit is a selection on an item whose links are to be read.
type visit struct {
	item *item
	on   *object
}

// reads are the batch functions of the run's caller.
func (r *run) reads() loader.Reads { return loader.Reads{Service: r.engine.svc, Caller: r.caller} }

// bodyOf is the body of a resource, nil if there is none.
func bodyOf(r *query.Resource) *body.Body {
	if r == nil {
		return nil
	}
	return r.Body
}

// kindOf is the kind of a resource, which mostly is that of the one before.
func (r *run) kindOf(b *body.Body) *kindInfo {
	if name := b.Stored.Kind; r.kind == nil || name != r.kind.Name {
		r.kind = r.engine.types[name].kind
	}
	return r.kind
}

// newItem is an item whose links are to be read.
func (r *run) newItem(b *body.Body, f *field) *item {
	it := r.parts.One()
	it.body, it.kind = b, r.kindOf(b)
	r.visit(it, f.on(it.kind))
	return it
}

// visit notes that the links of a selection are to be read.
func (r *run) visit(it *item, on *object) {
	if len(on.links) > 0 {
		r.next = append(r.next, visit{it, on})
	}
}

// newPage is a page whose links are to be read: those below nodes and edges.
func (r *run) newPage(p *query.Page, f *field) *page {
	out := r.pages.One()
	*out = page{Page: p, items: r.parts.Take(len(p.Edges))}
	if p.Dependencies != nil {
		r.visitOthers(out, f)
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
				r.visit(it, l.on(it.kind))
			case opEdges:
				for _, node := range l.sub.links {
					r.visit(it, node.on(it.kind))
				}
			}
		}
	}
	return out
}

// arguments are those of a field; evaluated once for all places of it in the answer.
func (r *run) arguments(f *field) (map[string]any, error) {
	a := r.evaluated(f)
	return a.values, a.err
}

// evaluated returns the arguments of a field. An operation pays for them once, before
// they are coerced.
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

// coerced returns the arguments of a field with the variables that are in them.
func (r *run) coerced(f *field) (a *arguments) {
	if n := len(r.spare) - 1; n >= 0 {
		a, r.spare = r.spare[n], r.spare[:n]
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

// forget makes what comes next read afresh.
func (r *run) forget() {
	r.moment.Forget()
	clear(r.found)
	clear(r.items)
}

func (r *run) push(f *field)   { r.path = append(r.path, step{field: f}) }
func (r *run) pushIndex(i int) { r.path = append(r.path, step{index: i}) }
func (r *run) pop()            { r.path = r.path[:len(r.path)-1] }

// failed reports an error of a field, whose value then is null, or halts.
func (r *run) failed(err error, f *field) {
	r.guard(err, f)
	r.tell(err, f)
}

// tell reports an error of a field. One with several violations is as many errors
// of the answer.
func (r *run) tell(err error, f *field) {
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

// report adds an error of a field to the answer, at the current path and the rest of
// it. Where it is about a value of the arguments, it says which.
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
	r.telling(out)
	graphql.AddError(r.ctx, out)
}

// where is the current path.
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
