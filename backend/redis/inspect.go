package redis

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	goredis "github.com/redis/go-redis/v9"
)

// inspect returns why the store is refused, if it is. It writes nothing.
func (s *Store) inspect(ctx context.Context, ses *session) error {
	if err := s.inspectShards(ctx, ses); err != nil {
		return err
	}
	for i := range s.core.shards {
		sh := &s.core.shards[i]
		on, err := ses.primary(ctx, sh)
		if err != nil {
			return err
		}
		_, fresh, err := s.core.ask(ctx, on, question{shard: sh})
		if err == nil && fresh {
			err = s.core.strangers(ctx, on)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// inspectShards looks for a store with another number of shards, whose keys may
// have other names. It looks at the first shard, which every store has.
func (s *Store) inspectShards(ctx context.Context, ses *session) error {
	pipe := ses.client.Pipeline()
	seen := map[string]bool{}
	var cmds []*goredis.SliceCmd
	for n := 1; n <= maxShards; n++ {
		if sh := newShard(s.core.cfg.Prefix, 0, n); !seen[sh.meta] {
			seen[sh.meta] = true
			cmds = append(cmds, pipe.HMGet(ctx, sh.meta, "magic", "shards"))
		}
	}
	if _, err := pipe.Exec(ctx); err != nil && !goredis.HasErrorPrefix(err, "WRONGTYPE") {
		return err
	}
	for _, cmd := range cmds {
		if magic, shards := text(cmd.Val(), 0), text(cmd.Val(), 1); magic == storeMagic && shards != strconv.Itoa(len(s.core.shards)) {
			return s.core.otherShards(shards)
		}
	}
	return nil
}

// strangersRounds bounds the search for keys of other programs. A round looks at
// about a thousand keys.
const strangersRounds = 50

// strangers refuses to create a store among keys of another program.
func (c *core) strangers(ctx context.Context, on goredis.Scripter) error {
	cn, ok := on.(interface {
		Scan(ctx context.Context, cursor uint64, match string, count int64) *goredis.ScanCmd
	})
	if !ok {
		return nil
	}
	cursor := uint64(0)
	for range strangersRounds {
		keys, next, err := cn.Scan(ctx, cursor, escapeGlob(c.cfg.Prefix)+"*", 1000).Result()
		if err != nil {
			return &refusal{err: fmt.Errorf("scan: %w", err)}
		}
		for _, key := range keys {
			rest := strings.TrimPrefix(key, c.cfg.Prefix)
			if len(rest) < 4 || !strings.ContainsRune("mxci", rune(rest[0])) || rest[1:3] != ":{" {
				return refuse("the keys under the prefix %q belong to another program; choose another prefix", c.cfg.Prefix)
			}
		}
		if cursor = next; cursor == 0 {
			break
		}
	}
	return nil
}

func escapeGlob(s string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`).Replace(s)
}
