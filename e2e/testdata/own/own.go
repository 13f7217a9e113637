package resolvers

import (
	"context"
	"fmt"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/query"
	"github.com/sluicegw/sluice/graph/core"
	"github.com/sluicegw/sluice/graph/engine"
)

func ownKey(kind, name string) backend.Key {
	return backend.Key{Kind: kind, Namespace: descriptor.DefaultNamespace, Name: name}
}

func ownNetworks(names []string) []*engine.Ref {
	out := []*engine.Ref{}
	for _, name := range names {
		out = append(out, engine.RefByKey(ownKey("Network", name)))
	}
	return out
}

func (r queryResolver) OwnProject(_ context.Context, name string) (*engine.Ref, error) {
	if name == "null" {
		return nil, nil
	}
	return engine.RefByKey(ownKey("Project", name)), nil
}

func (r queryResolver) OwnNeeded(ctx context.Context, name string) (*engine.Ref, error) {
	return r.OwnProject(ctx, name)
}

func (r queryResolver) OwnRead(ctx context.Context, name string) (*engine.Ref, error) {
	res, err := r.loaders(ctx).Resource(ctx, ownKey("Project", name))
	return engine.RefTo(res), err
}

func (r queryResolver) OwnWrong(ctx context.Context, name string) (*engine.Ref, error) {
	return r.OwnProject(ctx, name)
}

func (r queryResolver) OwnWrongPage(ctx context.Context) (*engine.PageRef, error) {
	page, err := r.loaders(ctx).Page(ctx, query.ListRequest{Kind: "Project"})
	return engine.RefToPage(page), err
}

func (r queryResolver) OwnNoKind(context.Context) (*engine.Ref, error) {
	return engine.RefByKey(ownKey("Nothing", "a")), nil
}

func (r queryResolver) OwnNetworks(_ context.Context, names []string) ([]*engine.Ref, error) {
	return ownNetworks(names), nil
}

func (r queryResolver) OwnStrict(_ context.Context, names []string) ([]*engine.Ref, error) {
	return ownNetworks(names), nil
}

func (r queryResolver) OwnTable(_ context.Context, names [][]string) ([][]*engine.Ref, error) {
	var out [][]*engine.Ref
	for _, row := range names {
		out = append(out, ownNetworks(row))
	}
	return out, nil
}

func (r queryResolver) OwnAny(_ context.Context, ids []string) ([]*engine.Ref, error) {
	var out []*engine.Ref
	for _, id := range ids {
		key, err := kind.ParseGlobalID(id)
		if err != nil {
			return nil, err
		}
		out = append(out, engine.RefByKey(key))
	}
	return out, nil
}

func (r queryResolver) OwnPage(ctx context.Context, filter *engine.Input, orders []*engine.Input, first *int32) (*engine.PageRef, error) {
	req := query.ListRequest{Kind: "Network"}
	var err error
	if req.Filter, err = filter.Coerce(ctx, "NetworkFilter"); err != nil {
		return nil, err
	}
	for _, o := range orders {
		order, err := o.Coerce(ctx, "NetworkOrder")
		if err != nil {
			return nil, err
		}
		if order.(map[string]any)["field"] != "NAME" {
			return nil, fmt.Errorf("order %v", order)
		}
		req.OrderBy = append(req.OrderBy, query.Order{Field: "name", Descending: order.(map[string]any)["direction"] == "DESC"})
	}
	if first != nil {
		req.First = new(int(*first))
	}
	page, err := r.loaders(ctx).Page(ctx, req)
	return engine.RefToPage(page), err
}

func (r queryResolver) OwnBox(ctx context.Context, project string, networks []string) (*core.OwnBox, error) {
	page, err := r.loaders(ctx).Page(ctx, query.ListRequest{Kind: "Network"})
	if err != nil {
		return nil, err
	}
	ref := engine.RefByKey(ownKey("Project", project))
	return &core.OwnBox{Name: project, Project: *ref, Maybe: ref, Networks: ownNetworks(networks), Page: *engine.RefToPage(page)}, nil
}

func (r queryResolver) OwnBoxes(ctx context.Context, projects []string) (out []*core.OwnBox, err error) {
	for _, name := range projects {
		box, err := r.OwnBox(ctx, name, nil)
		if err != nil {
			return nil, err
		}
		out = append(out, box)
	}
	return out, nil
}

func (r queryResolver) OwnStrictBoxes(ctx context.Context, projects []string) ([]*core.OwnBox, error) {
	return r.OwnBoxes(ctx, projects)
}

func (r queryResolver) OwnOuter(ctx context.Context, project string) (*core.OwnOuter, error) {
	boxes, err := r.OwnBoxes(ctx, []string{"p", project})
	if err != nil {
		return nil, err
	}
	return &core.OwnOuter{Box: boxes[0], Boxes: boxes, Maybe: boxes[1]}, nil
}

func (r queryResolver) OwnUnion(ctx context.Context, projects []string) (out []core.OwnThing, err error) {
	for _, name := range projects {
		if name == "note" {
			box, err := r.OwnBox(ctx, "p", nil)
			if err != nil {
				return nil, err
			}
			out = append(out, &core.OwnNote{Name: name, Other: box})
			continue
		}
		box, err := r.OwnBox(ctx, name, nil)
		if err != nil {
			return nil, err
		}
		out = append(out, box)
	}
	return out, nil
}

func (r queryResolver) OwnInterface(ctx context.Context, projects []string) (out []core.OwnNamed, err error) {
	things, err := r.OwnUnion(ctx, projects)
	for _, thing := range things {
		out = append(out, thing.(core.OwnNamed))
	}
	return out, err
}

func (r queryResolver) OwnJSON(context.Context) (any, error) { return map[string]any{"$": 0}, nil }

func (r queryResolver) OwnInputs(ctx context.Context, filter *engine.Input, orders []*engine.Input, nested *core.OwnInput, typ *string) (any, error) {
	name := "NetworkFilter"
	if typ != nil {
		name = *typ
	}
	out := map[string]any{}
	var err error
	if out["filter"], err = filter.Coerce(ctx, name); err != nil {
		return nil, err
	}
	for i, o := range orders {
		if out[fmt.Sprint("order", i)], err = o.Coerce(ctx, "NetworkOrder"); err != nil {
			return nil, err
		}
	}
	if nested != nil {
		for i, f := range nested.Filters {
			if out[fmt.Sprint("nested", i)], err = f.Coerce(ctx, "NetworkFilter"); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

func (r mutationResolver) OwnCreate(ctx context.Context, input engine.Input) (*core.OwnCreated, error) {
	in, err := input.Coerce(ctx, "CreateNetworkInput")
	if err != nil {
		return nil, err
	}
	tree := in.(map[string]any)
	name, _ := tree["name"].(string)
	if _, err := r.service.Writer.Create(ctx, service.CreateRequest{Identity: kind.Identity{Kind: "Network", Name: name}, Spec: tree["spec"]}); err != nil {
		return nil, err
	}
	return &core.OwnCreated{Network: *engine.RefByKey(ownKey("Network", name)), Number: 1}, nil
}

type subscriptionResolver struct{ *Resolver }

// Subscription implements [core.ResolverRoot].
func (r *Resolver) Subscription() core.SubscriptionResolver { return subscriptionResolver{r} }

// OwnEvents makes a box of each name when the one before was taken.
func (r subscriptionResolver) OwnEvents(ctx context.Context, projects []string, filter *engine.Input) (<-chan *core.OwnBox, error) {
	if _, err := filter.Coerce(ctx, "NetworkFilter"); err != nil {
		return nil, err
	}
	out := make(chan *core.OwnBox)
	go func() {
		defer close(out)
		for _, name := range projects {
			box, err := queryResolver(r).OwnBox(ctx, name, nil)
			if name == "null" || err != nil {
				box = nil
			}
			select {
			case out <- box:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out, nil
}

func (subscriptionResolver) OwnStream(_ context.Context, projects []string) (<-chan *engine.Ref, error) {
	out := make(chan *engine.Ref, len(projects))
	defer close(out)
	for _, name := range projects {
		out <- engine.RefByKey(ownKey("Project", name))
	}
	return out, nil
}

func (subscriptionResolver) OwnNoStream(context.Context) (<-chan *engine.Ref, error) {
	return nil, fmt.Errorf("there is no stream")
}
