package loader

import (
	"context"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/query"
)

// Service is what batches are read from.
type Service interface {
	// Lookup reads resources, nil for what is absent or unreadable.
	Lookup(context.Context, access.Caller, []backend.Key) ([]*query.Resource, error)
	// ListMany reads pages of connections, each with its own error.
	ListMany(context.Context, access.Caller, []query.ListRequest) ([]*query.Page, []error)
	// Dependencies reads pages of what is related to resources, each with its own error.
	Dependencies(context.Context, access.Caller, []query.DependencyRequest) ([]*query.Page, []error)
}

// Reads are the batch functions of one caller. The engine calls them with all
// that a level of its answer wants, [Loaders] with what resolvers ask for at
// about the same time.
type Reads struct {
	Service Service
	Caller  access.Caller
}

// Resources reads resources, nil for what is absent or unreadable.
func (r Reads) Resources(ctx context.Context, keys []backend.Key) ([]*query.Resource, error) {
	return r.Service.Lookup(ctx, r.Caller, keys)
}

// Pages reads pages of connections, each with its own error.
func (r Reads) Pages(ctx context.Context, requests []query.ListRequest) ([]*query.Page, []error) {
	return r.Service.ListMany(ctx, r.Caller, requests)
}

// Dependencies reads pages of what is related to resources, each with its own error.
func (r Reads) Dependencies(ctx context.Context, requests []query.DependencyRequest) ([]*query.Page, []error) {
	return r.Service.Dependencies(ctx, r.Caller, requests)
}
