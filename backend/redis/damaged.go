package redis

import (
	"context"
	"errors"

	goredis "github.com/redis/go-redis/v9"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/storekit"
)

// takeDamaged prepares a batch to be sent again after the script found a resource
// that does not decode. Deletes whose condition is of presence alone may remove
// such resources. The script has to be told which members lead to them, so the
// whole index of the shard is read, once for all these deletes. Any other action
// on such a resource is [backend.ErrUnreadable].
func (s *Store) takeDamaged(ctx context.Context, p *proposal, reply []any) error {
	i, err := p.action(text(reply, 1))
	if err != nil {
		return err
	}
	asked := make(map[string]*action)
	for i := range p.actions {
		a := &p.batch.Actions[i]
		if a.Op == backend.OpDelete && a.If == (backend.Condition{Presence: a.If.Presence}) {
			asked[string(a.Key.Append(nil))] = &p.actions[i]
		}
	}
	if asked[string(p.batch.Actions[i].Key.Append(nil))] == nil {
		return storekit.Unreadable(p.batch.Actions[i].Key, errors.New("the batch asks more of it"))
	}
	return s.read(ctx, "damaged", func(ctx context.Context, ses *session) error {
		for _, a := range asked {
			a.op, a.more = opDeleteDamaged, nil
		}
		lo := "-"
		for {
			members, err := ses.client.ZRangeArgs(ctx, goredis.ZRangeArgs{Key: p.shard.members, ByLex: true, Start: lo, Stop: "+", Count: scanChunk}).Result()
			if err != nil {
				return err
			}
			for _, m := range members {
				k, err := targetOf(m)
				if err != nil {
					continue
				}
				if a := asked[string(k.Append(nil))]; a != nil {
					a.more = packed(a.more, []byte(m))
				}
			}
			if len(members) < scanChunk {
				return nil
			}
			lo = "(" + members[len(members)-1]
		}
	})
}
