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

// nodes reads the resources with these ids, nil where there is none.
func (r *Resolver) nodes(ctx context.Context, ids []string) ([]model.Node, error) {
	if len(ids) > maxIDs {
		return nil, tooLong("ids", "maxItems", maxIDs, "elements")
	}
	keys := make([]backend.Key, len(ids))
	for i, id := range ids {
		var err error
		if keys[i], err = service.ParseGlobalID(id); err != nil {
			return nil, fail(ctx, err)
		}
	}
	found, err := r.loaders(ctx).Resources(ctx, keys)
	if err != nil {
		return nil, fail(ctx, err)
	}
	out := make([]model.Node, len(ids))
	for i, res := range found {
		if res != nil {
			out[i], _ = res.Object.(model.Node)
		}
	}
	return out, nil
}
