package resolvers

import (
	"context"

	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/graph/core"
)

// Viewer resolves Query.viewer.
func (r queryResolver) Viewer(ctx context.Context) (*core.Viewer, error) {
	id := access.CallerFrom(ctx).Identity
	if id == nil {
		return &core.Viewer{Name: access.Anonymous, Source: access.Anonymous, Groups: []string{}}, nil
	}
	out := &core.Viewer{Name: id.Name, Source: id.Source, Groups: id.Groups}
	if !id.ExpiresAt.IsZero() {
		out.ExpiresAt = &id.ExpiresAt
	}
	return out, nil
}
