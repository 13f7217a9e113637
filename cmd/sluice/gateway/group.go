package gateway

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// group runs functions until ctx ends or one of them fails. When it stops, it first waits for the edges, which take
// requests, and then stops the services below, which running requests need.
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
