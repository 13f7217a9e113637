package gateway

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// group runs the edges, which take requests, and the services below them until ctx ends or one of them fails.
// The edges are stopped first: running requests need the services.
func group(ctx context.Context, edges []func(context.Context) error, below ...func(context.Context) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	belowCtx, stopBelow := context.WithCancel(context.WithoutCancel(ctx))
	defer stopBelow()
	var all, edge errgroup.Group
	for _, run := range below {
		all.Go(func() error {
			defer stop()
			return run(belowCtx)
		})
	}
	for _, run := range edges {
		edge.Go(func() error {
			defer stop()
			return run(ctx)
		})
	}
	all.Go(func() error {
		defer stopBelow()
		return edge.Wait()
	})
	return all.Wait()
}
