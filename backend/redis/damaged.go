package redis

import (
	"context"
	"errors"

	goredis "github.com/redis/go-redis/v9"

	"github.com/sluicegw/sluice/backend"
)

// reproposal makes a batch that removes a resource which does not decode, with
// all that leads to it, out of one that the script could not judge. Whoever asks
// nothing of the resource but to be there may do that. It reads the whole index
// of the shard.
func (s *Store) reproposal(ctx context.Context, p *proposal, reply []any, err error) (*proposal, error) {
	if err != nil {
		return p, err
	}
	i, err := p.action(text(reply, 1))
	if err != nil {
		return p, err
	}
	a := &p.batch.Actions[i]
	if a.Do != backend.DeedDelete || a.If != (backend.Condition{Presence: a.If.Presence}) {
		return p, errors.New("the batch asks more of it")
	}
	var found []byte
	own := string(a.Key.Append(nil))
	err = s.read(ctx, "damaged", func(ctx context.Context, ses *session) error {
		found = found[:0]
		lo := "-"
		for {
			members, err := ses.client.ZRangeArgs(ctx, goredis.ZRangeArgs{Key: p.shard.rows, ByLex: true, Start: lo, Stop: "+", Count: scanChunk}).Result()
			if err != nil {
				return err
			}
			for _, m := range members {
				if k, err := targetOf(m); err == nil && string(k.Append(nil)) == own {
					found = appendEntry(found, m[0], []byte(m[1:]))
				}
				lo = "(" + m
			}
			if len(members) < scanChunk {
				return nil
			}
		}
	})
	if err != nil {
		return p, err
	}
	args := p.args[i*actionArguments:]
	args[8], args[9] = "damaged", found
	return p, nil
}
