package resolvers

import (
	"context"
	"fmt"
	"slices"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/dependency"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/query"
	"github.com/sluicegw/sluice/graph/core"
	"github.com/sluicegw/sluice/graph/engine"
)

// Limits of a tree of dependencies.
const (
	defaultDepth = 3
	maxDepth     = 10
	maxNodes     = 1000
	// maxReferrers is the maximum number of referring resources that the walk follows, for each resource and reference.
	maxReferrers = 1000
)

// DependencyTree resolves Query.dependencyTree.
func (r queryResolver) DependencyTree(
	ctx context.Context, id string, wanted *core.DependencyDirection, levels *int32,
) (*core.DependencyTree, error) {
	direction, depth := core.DependencyDirectionBoth, int32(defaultDepth)
	if wanted != nil {
		direction = *wanted
	}
	if levels != nil {
		depth = *levels
	}
	if depth < 1 || depth > maxDepth {
		return nil, &failure.Error{
			Code: failure.CodeBadUserInput, Path: "depth", Rule: "max", Limit: maxDepth,
			Message: fmt.Sprintf("depth is %d; 1 to %d is accepted", depth, maxDepth),
		}
	}
	key, err := r.service.KeyOf(id)
	if err != nil {
		return nil, err
	}
	walked, err := r.loaders(ctx).Once(fmt.Sprint("dependencyTree", key, direction, depth), func() (any, error) {
		return r.tree(ctx, key, direction, depth)
	})
	t, _ := walked.(*tree)
	if t == nil {
		return nil, err
	}
	for _, f := range graphql.CollectFieldsCtx(ctx, nil) { // an error of one field leaves the other fields valid
		if err := t.failed[f.Name]; err != nil {
			graphql.AddError(ctx, &gqlerror.Error{
				Err: err, Message: err.Error(), Path: append(slices.Clip(graphql.GetPath(ctx)), ast.PathName(f.Alias)),
				Locations: []gqlerror.Location{{Line: f.Position.Line, Column: f.Position.Column}},
			})
		}
	}
	return &t.DependencyTree, nil
}

// tree is a tree of dependencies.
type tree struct {
	core.DependencyTree
	// failed has the errors of the tree's fields, by the name of the field.
	failed map[string]error
}

// tree returns the tree of a resource; nil if the resource does not exist.
func (r *Resolver) tree(
	ctx context.Context, key backend.Key, direction core.DependencyDirection, depth int32,
) (*tree, error) {
	root, err := r.loaders(ctx).Resource(ctx, key)
	if err != nil || root == nil {
		return nil, err
	}
	t := &tree{failed: map[string]error{}}
	t.Root = node(key)
	t.Dependencies = []*core.DependencyNode{}
	t.Dependents = []*core.DependencyNode{}
	begin := &place{node: t.Root, key: key}
	if direction != core.DependencyDirectionDependents {
		w := &walk{
			Resolver: r,
			expand:   r.dependencies,
			outward:  true,
			depth:    int(depth),
			seen:     map[backend.Key]bool{key: true},
		}
		t.Dependencies, t.failed["dependencies"] = w.run(ctx, begin)
		t.Truncated = w.truncated
	}
	if direction != core.DependencyDirectionDependencies {
		w := &walk{Resolver: r, expand: r.dependents, depth: int(depth), seen: map[backend.Key]bool{key: true}}
		t.Dependents, t.failed["dependents"] = w.run(ctx, begin)
		t.Truncated = t.Truncated || w.truncated
	}
	return t, nil
}

func node(key backend.Key) *core.DependencyNode {
	return &core.DependencyNode{
		ResourceID: kind.GlobalID(key),
		Kind:       key.Kind,
		Name:       key.Name,
		Namespace:  nonempty(key.Namespace),
	}
}

// place is a node of the tree during the walk.
type place struct {
	node  *core.DependencyNode
	key   backend.Key
	above *place
}

// under reports whether a resource is the place itself or one of its ancestors.
func (p *place) under(key backend.Key) bool {
	for ; p != nil; p = p.above {
		if p.key == key {
			return true
		}
	}
	return false
}

// step is a step of the walk from one resource to another, along a reference.
type step struct {
	reference descriptor.Reference
	key       backend.Key
	// unreadable reports whether the referring resource cannot be read. Then the path of the
	// reference is unknown.
	unreadable bool
}

// walk follows references from a root, level by level.
type walk struct {
	*Resolver
	// expand returns the steps from each place of a level. It also reports whether it has left out
	// some steps.
	expand func(context.Context, []*place) ([][]step, bool, error)
	// outward reports whether the walk goes from referring resources to their targets, and not from
	// targets to referring resources.
	outward bool
	depth   int
	// seen has the resources that the walk has reached. The walk follows each of them once.
	seen      map[backend.Key]bool
	truncated bool
}

func (w *walk) run(ctx context.Context, root *place) ([]*core.DependencyNode, error) {
	out := []*core.DependencyNode{}
	level := []*place{root}
	for n := 1; n <= w.depth && len(level) > 0; n++ {
		steps, more, err := w.expand(ctx, level)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, err
		}
		w.truncated = w.truncated || more
		for _, some := range steps {
			if err := budget.From(ctx).Spend(budget.Steps, budget.TreeNode*len(some)); err != nil {
				return nil, err
			}
		}
		var next []*place
		for i, from := range level {
			for _, s := range steps[i] {
				if len(out) == maxNodes {
					w.truncated = true
					return out, nil
				}
				p := &place{node: node(s.key), key: s.key, above: from}
				p.node.Level = int32(n)
				p.node.From = &from.node.ResourceID
				p.node.Outward = w.outward
				p.node.Cycle = from.under(s.key)
				p.node.Unreadable = s.unreadable
				p.node.Path, p.node.Guarded = new(w.pathOf(s, from)), &s.reference.Guarded
				out = append(out, p.node)
				if !w.seen[s.key] {
					w.seen[s.key] = true
					next = append(next, p)
				}
			}
		}
		level = next
	}
	return out, nil
}

// pathOf returns the path, with API names, of the reference between a place and the resource of a
// step.
func (w *walk) pathOf(s step, from *place) string {
	of := s.key.Kind
	if w.outward {
		of = from.key.Kind
	}
	if k, err := w.service.Kind(of); err == nil {
		return k.APIPath(s.reference.Path)
	}
	return s.reference.Path
}

// dependencies returns the steps to the resources to which the places of a level refer. It leaves
// out references to kinds of which the caller may not GET any resource.
func (r *Resolver) dependencies(ctx context.Context, level []*place) ([][]step, bool, error) {
	keys := make([]backend.Key, len(level))
	for i, p := range level {
		keys[i] = p.key
	}
	found, err := r.loaders(ctx).Resources(ctx, keys) // each kind in one call
	if err != nil {
		return nil, false, err
	}
	rights, err := r.service.Reader.Rights(ctx)
	if err != nil {
		return nil, false, err
	}
	guards, err := r.service.Reader.Guards(ctx, found)
	if err != nil {
		return nil, false, err
	}
	out := make([][]step, len(level))
	for i, res := range found {
		if res == nil {
			continue
		}
		for _, ref := range r.service.Reader.References(res) {
			if k, err := r.service.Kind(ref.Key.Kind); err == nil && rights.Use(k, descriptor.VerbGet) == nil {
				ref.Guarded = guards.HasGuard(res.Stored.Key, ref.Key, ref.Guarded)
				out[i] = append(out[i], step{reference: ref.Reference, key: ref.Key})
			}
		}
	}
	return out, false, nil
}

// dependents returns the steps to the resources that refer to the places of a level.
func (r *Resolver) dependents(ctx context.Context, level []*place) ([][]step, bool, error) {
	out := make([][]step, len(level))
	type question struct {
		place     int
		reference descriptor.Reference
	}
	var questions []question
	var requests []query.ListRequest
	rights, err := r.service.Reader.Rights(ctx)
	if err != nil {
		return nil, false, err
	}
	for i, p := range level {
		for _, k := range r.service.Kinds() {
			for _, ref := range k.References {
				if ref.Kind != p.key.Kind || rights.Use(k, descriptor.VerbList) != nil {
					continue
				}
				questions = append(questions, question{i, ref})
				req := query.ListRequest{
					Kind:   k.Name,
					First:  new(maxReferrers),
					Ahead:  true,
					Parent: query.Parent{Reference: ref.Path, Key: p.key},
				}
				if p.key.Namespace != "" {
					req.Namespace = &p.key.Namespace
				}
				requests = append(requests, req)
			}
		}
	}
	pages, err := r.loaders(ctx).Pages(ctx, requests)
	if err != nil {
		return nil, false, err
	}
	var referring []*query.Resource
	for _, p := range pages {
		for i := range p.Edges {
			referring = append(referring, &p.Edges[i].Resource)
		}
	}
	guards, err := r.service.Reader.Guards(ctx, referring)
	if err != nil {
		return nil, false, err
	}
	more := false
	var incomplete []int // places whose lists may lack a resource that cannot be read
	for i, q := range questions {
		n, err := pages[i].Unreadable(ctx)
		if err != nil {
			return nil, false, err
		}
		if n > 0 && !slices.Contains(incomplete, q.place) {
			incomplete = append(incomplete, q.place)
		}
		for _, e := range pages[i].Edges {
			ref, from := q.reference, e.Resource.Stored.Key
			ref.Guarded = guards.HasGuard(from, level[q.place].key, ref.Guarded)
			out[q.place] = append(out[q.place], step{reference: ref, key: from})
		}
		cut, err := pages[i].PageInfo().HasNextPage(ctx)
		if err != nil {
			return nil, false, err
		}
		more = more || cut
	}
	cut, err := r.addUnreadable(ctx, level, incomplete, out)
	return out, more || cut, err
}

// addUnreadable adds steps to unreadable resources that refer to the places of a level. Lists leave
// out such resources. places has the indexes of the places to which unreadable resources may refer.
// more reports whether some steps were left out.
func (r *Resolver) addUnreadable(
	ctx context.Context, level []*place, places []int, out [][]step,
) (more bool, err error) {
	if len(places) == 0 {
		return false, nil
	}
	keys := make([]backend.Key, len(places))
	for i, at := range places {
		keys[i] = level[at].key
	}
	found, err := r.loaders(ctx).Resources(ctx, keys)
	if err != nil {
		return false, err
	}
	requests := make([]query.DependencyRequest, len(places))
	for i, key := range keys {
		requests[i] = query.DependencyRequest{
			Relation: query.Dependents,
			Key:      key,
			None:     found[i] == nil,
			First:    new(maxReferrers),
			Ahead:    true,
		}
		if found[i] != nil {
			requests[i].Body = found[i].Body
		}
	}
	pages, errs := r.service.Reader.Dependencies(ctx, requests)
	for i, p := range pages {
		if errs[i] != nil {
			return false, errs[i]
		}
		at := places[i]
		for _, d := range p.Dependencies {
			if d.State == dependency.Unreadable {
				reference := descriptor.Reference{Guarded: d.Guarded}
				out[at] = append(out[at], step{reference: reference, key: d.Key, unreadable: true})
			}
		}
		cut, err := p.PageInfo().HasNextPage(ctx)
		if err != nil {
			return false, err
		}
		more = more || cut
	}
	return more, nil
}

// dependencyNodeResolver resolves the fields of DependencyNode. gqlgen requires this name.
type dependencyNodeResolver struct{ *Resolver }

// DependencyNode implements [core.ResolverRoot].
func (r *Resolver) DependencyNode() core.DependencyNodeResolver { return dependencyNodeResolver{r} }

// lookup reads the resource of a node. One call reads the resources of several nodes.
func (r dependencyNodeResolver) lookup(
	ctx context.Context, id string,
) (key backend.Key, res *query.Resource, err error) {
	if key, err = kind.ParseGlobalID(id); err == nil {
		res, err = r.loaders(ctx).Resource(ctx, key)
	}
	return key, res, err
}

// State resolves DependencyNode.state.
func (r dependencyNodeResolver) State(ctx context.Context, n *core.DependencyNode) (*core.DependencyState, error) {
	if n.From == nil {
		return nil, nil
	}
	if n.Unreadable {
		return new(core.DependencyStateUnreadable), nil
	}
	referrer, target := *n.From, n.ResourceID
	if !n.Outward {
		referrer, target = n.ResourceID, *n.From
	}
	_, from, err := r.lookup(ctx, referrer)
	if err != nil || from == nil {
		return nil, err // the referrer was deleted since the tree was read
	}
	key, to, err := r.lookup(ctx, target)
	if err != nil {
		return nil, err
	}
	return new(core.DependencyState(query.DependencyState(from, to, key))), nil
}

// Resource resolves DependencyNode.resource.
func (r dependencyNodeResolver) Resource(ctx context.Context, n *core.DependencyNode) (*engine.Ref, error) {
	_, res, err := r.lookup(ctx, n.ResourceID)
	return engine.RefTo(res), err
}
