package gateway

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// group runs functions until ctx ends or one of them fails. It stops them in two steps. First it stops the edges, which
// accept requests, and waits for them. Then it stops the functions in below, because requests need them until the end.
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
