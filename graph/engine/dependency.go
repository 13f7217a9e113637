package engine

import (
	"strconv"

	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/query"
)

// relation returns the relation of a connection of dependencies.
func (f *field) relation() query.Relation {
	switch f.op {
	case opDependencies:
		return query.Dependencies
	case opDependents:
		return query.Dependents
	}
	return query.BlockedBy
}

// dependencies returns the request of a connection of dependencies.
func (r *run) dependencies(w *want) query.DependencyRequest {
	b, asked := w.item.body, &w.args.request
	return query.DependencyRequest{
		Relation: w.field.relation(), Key: b.Stored.Key, Body: b, Targets: w.field.targets,
		First: asked.First, Last: asked.Last, After: asked.After, Before: asked.Before, Ahead: w.field.ahead,
	}
}

// readBlockers reads a page of the resources for which a deletion waits.
func (r *run) readBlockers(f *field, w *service.Written) (out link) {
	args := r.evaluated(f)
	if out.err = args.err; out.err != nil {
		return out
	}
	req := query.DependencyRequest{Relation: query.BlockedBy, First: args.request.First, After: args.request.After, ChangeCursor: f.changeCursor, Ahead: f.ahead}
	if req.None = w.Resource == nil || w.Deletion == service.Deleted; w.Resource != nil {
		req.Key = w.Resource.Stored.Key
	}
	pages, errs := r.engine.svc.Dependencies(r.ctx, []query.DependencyRequest{req})
	if out.err = errs[0]; out.err != nil {
		r.haltOn(out.err, f)
		return out
	}
	out.page = r.newPage(pages[0], f)
	return out
}

// dependencyField writes a field of a dependency.
func (r *run) dependencyField(buf []byte, f *field, src *source) ([]byte, bool) {
	d := &src.page.Dependencies[src.index]
	switch f.op {
	case opOtherID:
		return r.appendID(buf, d.Key), true
	case opOtherKind:
		return appendText(buf, d.Key.Kind), true
	case opOtherNamespace:
		return appendText(buf, d.Key.Namespace), d.Key.Namespace != ""
	case opOtherName:
		return appendText(buf, d.Key.Name), true
	case opOtherPath:
		return appendText(buf, d.Path), true
	case opOtherState:
		return appendText(buf, string(d.State)), true
	case opOtherGuarded:
		return strconv.AppendBool(buf, d.Guarded), true
	}
	it := &src.page.items[src.index]
	if it.body == nil {
		return buf, false
	}
	return r.resourceOn(buf, f, it)
}
