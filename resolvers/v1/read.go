package resolvers

import (
	"context"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/graph/v1/model"
)

// get reads one resource as the value of its kind; nil if there is none.
func get[T backend.Object](ctx context.Context, r *Resolver, id service.Identity) (T, error) {
	var none T
	res, err := r.service.Get(ctx, caller(ctx), id)
	if err != nil || res == nil {
		return none, fail(ctx, err)
	}
	return as[T](res.Object), nil
}

// as is the object as the type of its kind, zero if there is none.
func as[T backend.Object](obj backend.Object) T {
	out, _ := obj.(T)
	return out
}

func (r *Resolver) resource(ctx context.Context, id service.Identity) (backend.Object, error) {
	return get[backend.Object](ctx, r, id)
}

func (r *Resolver) node(ctx context.Context, id string) (model.Node, error) {
	res, err := r.service.Node(ctx, caller(ctx), id)
	if err != nil || res == nil {
		return nil, fail(ctx, err)
	}
	node, _ := res.Object.(model.Node)
	return node, nil
}

func (r *Resolver) manifest(ctx context.Context, stored *backend.Resource, format service.ManifestFormat) (string, error) {
	text, err := r.service.Manifest(stored, format)
	return text, fail(ctx, err)
}

// listing is what the field of a connection is asked for.
type listing struct {
	kind          string
	namespace     *string
	first, last   *int32
	after, before *string
}

// page is a page with the values of its resources.
type page[T backend.Object] struct {
	*service.Page
	nodes []T
}

// list reads a page and builds the connection of its kind.
func list[T backend.Object, C any](ctx context.Context, r *Resolver, l listing, build func(*page[T]) *C) (*C, error) {
	p, err := r.service.List(ctx, caller(ctx), service.ListRequest{
		Kind: l.kind, Namespace: l.namespace, First: size(l.first), Last: size(l.last), After: l.after, Before: l.before,
	})
	if err != nil {
		return nil, fail(ctx, err)
	}
	out := &page[T]{Page: p, nodes: make([]T, len(p.Edges))}
	for i, e := range p.Edges {
		out.nodes[i] = as[T](e.Resource.Object)
	}
	return build(out), nil
}

func size(n *int32) *int {
	if n == nil {
		return nil
	}
	return new(int(*n))
}

func totalCount(ctx context.Context, p *service.Page) (int32, error) {
	n, err := p.TotalCount(ctx)
	return int32(min(n, 1<<31-1)), fail(ctx, err)
}
