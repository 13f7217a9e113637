//go:build quota

// Package resolvers shows how to add a field to the API. Copy quota.graphqls to
// schema/core and this file to resolvers. Then `make generate` and `go build -tags
// quota ./cmd/sluice` build a gateway that has the field.
package resolvers

import (
	"context"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/query"
	"github.com/sluicegw/sluice/graph/core"
	"github.com/sluicegw/sluice/graph/engine"
)

// QuotaSummary resolves Query.quotaSummary. It reads through the loaders, so that
// several summaries in one query are read together. The engine resolves the selected
// fields of the project and of its ports.
func (r queryResolver) QuotaSummary(ctx context.Context, namespace, name string, ports *engine.Input) (*core.QuotaSummary, error) {
	key := backend.Key{Kind: "Project", Namespace: namespace, Name: name}
	project, err := r.loaders(ctx).Resource(ctx, key)
	if err != nil || project == nil {
		return nil, err
	}
	networks, err := r.loaders(ctx).Page(ctx, ofProject("Network", key, 0))
	if err != nil {
		return nil, err
	}
	used, err := networks.TotalCount(ctx)
	if err != nil {
		return nil, err
	}
	req := ofProject("Port", key, 10)
	if req.Filter, err = ports.Coerce(ctx, "PortFilter"); err != nil {
		return nil, err
	}
	page, err := r.loaders(ctx).Page(ctx, req)
	if err != nil {
		return nil, err
	}
	return &core.QuotaSummary{Project: *engine.RefTo(project), Networks: int32(used), Ports: engine.RefToPage(page)}, nil
}

// ofProject returns a request for the first resources of a kind that refer to a
// project.
func ofProject(kind string, project backend.Key, first int) query.ListRequest {
	return query.ListRequest{
		Kind: kind, Namespace: &project.Namespace, First: &first,
		Parent: query.Parent{Reference: "spec.resource.projectRef", Key: project},
	}
}
