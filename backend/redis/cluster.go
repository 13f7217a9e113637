package redis

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
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
	slots := &slotsLimit{most: int64(limit)}
	slots.limit.Store(slots.most)
	if len(o.Addrs) > 1 { // there is a next node
		slots.most = int64(limit / 2)
		slots.limit.Store(slots.most / 2)
	}
	client := goredis.NewClusterClient(o)
	client.OnNewNode(func(node *goredis.Client) { node.AddHook(slots) })
	return client
}

// slotsLimit is how long a node has to say which node has which slots, its connection
// included. After one that took longer the next has twice the time, up to the most: it may be
// the network that is slow. Both are in nanoseconds.
type slotsLimit struct {
	limit atomic.Int64
	most  int64
}

var _ goredis.Hook = (*slotsLimit)(nil)

// DialHook is [goredis.Hook.DialHook].
func (*slotsLimit) DialHook(next goredis.DialHook) goredis.DialHook { return next }

// ProcessPipelineHook is [goredis.Hook.ProcessPipelineHook].
func (*slotsLimit) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return next
}

// ProcessHook is [goredis.Hook.ProcessHook].
func (l *slotsLimit) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		if cmd.Name() != "cluster" {
			return next(ctx, cmd)
		}
		limit := l.limit.Load()
		limited, cancel := context.WithTimeout(ctx, time.Duration(limit))
		defer cancel()
		err := next(limited, cmd)
		// The connection's deadline is that of limited, and may pass a moment before it.
		var network net.Error
		if errors.As(err, &network) && network.Timeout() && ctx.Err() == nil {
			l.limit.CompareAndSwap(limit, min(2*limit, l.most))
		}
		return err
	}
}
