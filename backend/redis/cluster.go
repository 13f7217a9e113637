package redis

import (
	"context"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// newClusterClient makes a client of a cluster, to which a node that does not answer matters
// only for its own slots. Two things that the client library asks of random nodes are kept
// from taking a call's whole time: which node has which slots, which a new client asks during
// its first call, is asked of the next node after a part of the time limit; and what commands
// the nodes know is not asked, since every command here has a key and goes to its master.
func newClusterClient(o *goredis.ClusterOptions, limit time.Duration) *goredis.ClusterClient {
	o.DisableRoutingPolicies = true
	client := goredis.NewClusterClient(o)
	client.OnNewNode(func(node *goredis.Client) { node.AddHook(slotsLimit(limit / 4)) })
	return client
}

// slotsLimit is how long a node has to say which node has which slots, its connection included.
type slotsLimit time.Duration

var _ goredis.Hook = slotsLimit(0)

// DialHook is [goredis.Hook.DialHook].
func (slotsLimit) DialHook(next goredis.DialHook) goredis.DialHook { return next }

// ProcessPipelineHook is [goredis.Hook.ProcessPipelineHook].
func (slotsLimit) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return next
}

// ProcessHook is [goredis.Hook.ProcessHook].
func (l slotsLimit) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		if cmd.Name() != "cluster" {
			return next(ctx, cmd)
		}
		ctx, cancel := context.WithTimeout(ctx, time.Duration(l))
		defer cancel()
		return next(ctx, cmd)
	}
}
