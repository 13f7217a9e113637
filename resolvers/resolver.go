// Package resolvers resolves the fields of schema/core, those that no kind
// derives. Each file of SDL there has a file of resolvers here. They run in
// gqlgen's goroutines; what they read of resources goes through package loader,
// which batches it, or is left to the engine ([engine.Ref]).
package resolvers

import (
	"context"

	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/graph/loader"
)

// Resolver is the root of all resolvers.
type Resolver struct {
	service *service.Service
}

// New returns the resolvers over a service.
func New(s *service.Service) *Resolver { return &Resolver{service: s} }

// loaders are those of the response.
func (r *Resolver) loaders(ctx context.Context) *loader.Loaders {
	if l := loader.From(ctx); l != nil {
		return l
	}
	return loader.New(r.service, access.CallerFrom(ctx), 0)
}

// nonempty is nil for the empty text.
func nonempty(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
