package resolvers

import (
	"context"

	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/graph/core"
)

// Unreadables resolves Query.unreadables.
func (r queryResolver) Unreadables(
	ctx context.Context, kindName string, namespace *string,
) ([]*core.ResourceUnreadable, error) {
	found, err := r.service.Reader.Unreadables(ctx, kindName, namespace)
	if err != nil {
		return nil, each(ctx, err)
	}
	out := make([]*core.ResourceUnreadable, len(found))
	for i, u := range found {
		out[i] = &core.ResourceUnreadable{
			ResourceID: kind.GlobalID(u.Key),
			Kind:       u.Key.Kind,
			Namespace:  nonempty(u.Key.Namespace),
			Name:       u.Key.Name,
			Reason:     u.Reason,
		}
	}
	return out, nil
}
