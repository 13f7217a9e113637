package redis

import (
	"context"
	"errors"
	"slices"

	goredis "github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"
)

// exchange is a set of commands that are sent together: to a single server in one transaction, to a cluster in a
// transaction for each shard, because there a transaction is limited to one slot.
type exchange struct {
	client  goredis.UniversalClient
	cluster bool
	pipes   map[int]goredis.Pipeliner
}

func (s *Store) exchange(ses *session) *exchange {
	return &exchange{client: ses.client, cluster: s.core.at.Cluster, pipes: map[int]goredis.Pipeliner{}}
}

// on returns the pipeline for the commands of a shard.
func (x *exchange) on(shard int) goredis.Pipeliner {
	if !x.cluster {
		shard = 0
	}
	if x.pipes[shard] == nil {
		x.pipes[shard] = x.client.TxPipeline()
	}
	return x.pipes[shard]
}

// maxExchanges is the maximum number of transactions that one call has in progress.
const maxExchanges = 16

// run sends all commands and waits for the answers. A missing key is no error.
func (x *exchange) run(ctx context.Context) error {
	var g errgroup.Group
	g.SetLimit(maxExchanges)
	for _, pipe := range x.pipes {
		g.Go(func() error {
			cmds, err := pipe.Exec(ctx)
			if err != nil && slices.ContainsFunc(cmds, outOfMemory) {
				err = x.plainly(ctx, cmds)
			}
			if errors.Is(err, goredis.Nil) {
				return nil
			}
			return err
		})
	}
	return g.Wait()
}

// outOfMemory reports whether the server has refused to queue a command because it is out of memory. It then accepts no
// transactions, not even for reading.
func outOfMemory(cmd goredis.Cmder) bool { return goredis.HasErrorPrefix(cmd.Err(), "OOM") }

// plainly sends the commands without a transaction. A server that is out of memory changes no resources, so that no
// change can happen between them.
func (x *exchange) plainly(ctx context.Context, cmds []goredis.Cmder) error {
	pipe := x.client.Pipeline()
	for _, cmd := range cmds {
		cmd.SetErr(nil)
		_ = pipe.Process(ctx, cmd) // only queues
	}
	_, err := pipe.Exec(ctx)
	return err
}
