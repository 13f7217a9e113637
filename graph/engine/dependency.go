package engine

import (
	"context"

	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/query"
)

func dependencyConnectionFields() fieldTable {
	return fieldTable{
		"edges":       {write: writeEdges, compile: compileEdges},
		"nodes":       {write: writeEdges},
		"hiddenCount": {write: counted(hiddenCount)},
	}.with(pageFields())
}

func dependencyEdgeFields() fieldTable {
	return fieldTable{
		"cursor": {write: writeCursor},
		"node":   {write: writeDependency},
	}
}

func dependencyFields() fieldTable {
	return fieldTable{
		"resourceId": {write: writeDependencyID},
		"kind":       {write: text(func(src source) string { return src.dependency().Key.Kind })},
		"namespace":  {write: optionalText(func(src source) string { return src.dependency().Key.Namespace })},
		"name":       {write: text(func(src source) string { return src.dependency().Key.Name })},
		"path":       {write: text(func(src source) string { return src.dependency().Path })},
		"state":      {write: text(func(src source) string { return string(src.dependency().State) })},
		"guarded":    {write: boolean(func(src source) bool { return src.dependency().Guarded })},
		"resource":   {write: writeDependencyResource},
	}
}

func (src source) dependency() *query.Dependency { return &src.page.Dependencies[src.index] }

func hiddenCount(ctx context.Context, src source) (int, error) { return src.page.Hidden(ctx) }

func writeDependency(ctx context.Context, r *run, buf []byte, f *field, src source) ([]byte, bool) {
	r.count(f, 1)
	return r.below(ctx, buf, f, src)
}

func writeDependencyID(_ context.Context, r *run, buf []byte, _ *field, src source) ([]byte, bool) {
	return r.appendID(buf, src.dependency().Key), true
}

func writeDependencyResource(ctx context.Context, r *run, buf []byte, f *field, src source) ([]byte, bool) {
	it := &src.page.items[src.index]
	if it.body == nil {
		return buf, false
	}
	return r.resourceOn(ctx, buf, f, it)
}

// compileDependencies returns the function derivedField.compile of a connection of dependencies.
func compileDependencies(relation query.Relation) func(*compiler, *field, *typeInfo) {
	return func(c *compiler, f *field, _ *typeInfo) {
		f.link = linkDependencies
		f.relation = relation
		f.targets = c.selects(f.set, "nodes", "state") || c.selects(f.set, "nodes", "resource") ||
			c.selects(f.set, "edges", "node", "state") || c.selects(f.set, "edges", "node", "resource")
		c.connection(f)
	}
}

// dependencies returns the request for a page of dependencies.
func (r *run) dependencies(w *want) query.DependencyRequest {
	b, request := w.item.body, &w.args.request
	return query.DependencyRequest{
		Relation: w.field.relation,
		Key:      b.Stored.Key,
		Body:     b,
		Targets:  w.field.targets,
		First:    request.First,
		Last:     request.Last,
		After:    request.After,
		Before:   request.Before,
		Ahead:    w.field.ahead,
	}
}

// blockers reads a page of the resources that prevent a deletion.
func (r *run) blockers(ctx context.Context, f *field, w *service.Written) link {
	args := r.evaluated(ctx, f)
	if args.err != nil {
		return link{err: args.err}
	}
	req := query.DependencyRequest{
		Relation:     query.BlockedBy,
		First:        args.request.First,
		After:        args.request.After,
		ChangeCursor: f.changeCursor,
		Ahead:        f.ahead,
		None:         w.Resource == nil || w.Deletion == service.Deleted,
	}
	if w.Resource != nil {
		req.Key = w.Resource.Stored.Key
	}
	pages, errs := r.engine.svc.Reader.Dependencies(ctx, []query.DependencyRequest{req})
	if errs[0] != nil {
		r.haltOn(ctx, errs[0], f)
		return link{err: errs[0]}
	}
	return link{page: r.newPage(pages[0], f)}
}
