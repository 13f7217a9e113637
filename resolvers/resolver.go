// Package resolvers resolves the fields of schema/core, which are not derived from kinds. For each
// SDL file there it has a file. The resolvers run in gqlgen's goroutines. They read resources
// through package loader, which batches reads, or leave the reading to the engine ([engine.Ref]).
package resolvers

import (
	"context"
	"sync"

	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/graph/core"
	"github.com/sluicegw/sluice/graph/loader"
)

// Resolver is the root of all resolvers.
type Resolver struct {
	service *service.Service
	// fields returns the fields of each kind, by the name of the kind.
	fields func() map[string][]*core.KindField
}

// New returns the resolvers for a service.
func New(s *service.Service) *Resolver {
	return &Resolver{service: s, fields: sync.OnceValue(func() map[string][]*core.KindField {
		out := map[string][]*core.KindField{}
		for _, k := range s.Kinds() {
			out[k.Name] = fieldsOf(k)
		}
		return out
	})}
}

// loaders returns the loaders of the response. If ctx has none, as between two events of a
// subscription, it returns new loaders.
func (r *Resolver) loaders(ctx context.Context) *loader.Loaders {
	if l := loader.From(ctx); l != nil {
		return l
	}
	return loader.New(r.service.Reader, 0)
}

// nonempty returns a pointer to s, or nil if s is empty.
func nonempty(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
