package resolvers

import (
	"context"
	"reflect"
	"slices"

	"github.com/99designs/gqlgen/graphql"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/graph/loader"
	"github.com/sluicegw/sluice/graph/v1/model"
)

// listing is what the field of a connection is asked for.
type listing struct {
	kind          string
	namespace     *string
	filter        any
	orderBy       []service.Order
	parent        *service.Parent
	first, last   *int32
	after, before *string
}

// request is what the service is asked for, given what of the connection is selected.
func (l *listing) request(ctx context.Context) service.ListRequest {
	return service.ListRequest{
		Kind: l.kind, Namespace: l.namespace, Filter: l.filter, OrderBy: l.orderBy, Parent: l.parent,
		First: size(l.first), Last: size(l.last), After: l.after, Before: l.before, ChangeCursor: selects(ctx, "changeCursor"),
	}
}

// selects says whether a field is among those that are selected of the current one.
func selects(ctx context.Context, name string) bool {
	fc := graphql.GetFieldContext(ctx)
	if fc == nil || !graphql.HasOperationContext(ctx) {
		return false
	}
	types := []string{fc.Field.Definition.Type.Name()}
	return slices.ContainsFunc(graphql.CollectFields(graphql.GetOperationContext(ctx), fc.Field.Selections, types), func(f graphql.CollectedField) bool {
		return f.Name == name
	})
}

// page is a page with the values of its resources.
type page[T backend.Object] struct {
	*service.Page
	nodes []T
}

func pageOf[T backend.Object](p *service.Page) *page[T] {
	out := &page[T]{Page: p, nodes: make([]T, len(p.Edges))}
	for i, e := range p.Edges {
		out.nodes[i] = as[T](e.Resource.Object)
	}
	return out
}

// list reads a page and builds the connection of its kind.
func list[T backend.Object, C any](ctx context.Context, r *Resolver, l *listing, build func(*page[T]) *C) (*C, error) {
	p, err := r.service.List(ctx, caller(ctx), l.request(ctx))
	if err != nil {
		return nil, fail(ctx, err)
	}
	return build(pageOf[T](p)), nil
}

// nested reads a page together with the others of its kind that the response asks for.
func nested[T backend.Object, C any](ctx context.Context, r *Resolver, l *listing, build func(*page[T]) *C) (*C, error) {
	p, err := r.loaders(ctx).Page(ctx, l.request(ctx))
	if err != nil {
		return nil, fail(ctx, err)
	}
	return build(pageOf[T](p)), nil
}

// inverse is the connection of the resources whose reference names the stored one.
func inverse[T backend.Object, C any](
	ctx context.Context, r *Resolver, stored *backend.Resource, reference string, l *listing, build func(*page[T]) *C,
) (*C, error) {
	l.parent = &service.Parent{Reference: reference, Key: stored.Key}
	l.namespace = namespaceOf(stored)
	return nested(ctx, r, l, build)
}

// names is the filter of resources by their names, in the form of the service.
type names struct {
	Name struct {
		In []string `json:"in"`
	} `json:"name"`
}

// many is the connection of the resources that a list of references names, in
// the order of their names.
func many[T backend.Object, C any](
	ctx context.Context, r *Resolver, stored *backend.Resource, refs []string, l *listing, build func(*page[T]) *C,
) (*C, error) {
	var filter names
	filter.Name.In = slices.Compact(slices.Sorted(slices.Values(refs)))
	if filter.Name.In == nil {
		filter.Name.In = []string{}
	}
	l.filter, l.namespace = filter, namespaceOf(stored)
	return nested(ctx, r, l, build)
}

// one is the resource that a reference names, zero if there is none.
func one[T backend.Object](ctx context.Context, r *Resolver, stored *backend.Resource, kind string, name *string) (T, error) {
	var none T
	if stored == nil || name == nil || *name == "" {
		return none, nil
	}
	res, err := r.loaders(ctx).Resource(ctx, backend.Key{Kind: kind, Namespace: stored.Namespace, Name: *name})
	if err != nil || res == nil {
		return none, fail(ctx, err)
	}
	return as[T](res.Object), nil
}

// loaders are those of the response, or new ones where there is no response.
func (r *Resolver) loaders(ctx context.Context) *loader.Loaders {
	if l := loader.From(ctx); l != nil {
		return l
	}
	return loader.New(r.service, caller(ctx), 0)
}

// namespaceOf is the namespace of a resource as a caller names it, nil for GLOBAL kinds.
func namespaceOf(stored *backend.Resource) *string {
	if stored == nil || stored.Namespace == "" {
		return nil
	}
	return &stored.Namespace
}

// enclosing is the stored resource around the value that a field is resolved of.
func enclosing(ctx context.Context) *backend.Resource {
	for fc := graphql.GetFieldContext(ctx); fc != nil; fc = fc.Parent {
		v := reflect.ValueOf(fc.Result)
		for v.IsValid() && (v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface) && !v.IsNil() {
			if from, ok := v.Interface().(interface{ Origin() *backend.Resource }); ok {
				return from.Origin()
			}
			v = v.Elem()
		}
	}
	return nil
}

// given is a value that may be left out, as an interface that then is nil.
func given[T any](v *T) any {
	if v == nil {
		return nil
	}
	return v
}

// orders reads the orders of a kind.
func orders[T any](in []*T, read func(*T) (field string, direction *model.OrderDirection)) []service.Order {
	var out []service.Order
	for _, o := range in {
		field, direction := read(o)
		out = append(out, service.Order{Field: field, Descending: direction != nil && *direction == model.OrderDirectionDesc})
	}
	return out
}

// resourceConnection is a page of resources of any kind as the API shows it.
func resourceConnection(p *page[backend.Object]) *model.ResourceConnection {
	c := &model.ResourceConnection{Nodes: p.nodes, PageInfo: p.PageInfo(), Page: p.Page, Edges: make([]*model.ResourceEdge, len(p.nodes))}
	for i, node := range p.nodes {
		c.Edges[i] = &model.ResourceEdge{Cursor: p.Cursor(i), Node: node}
	}
	return c
}
