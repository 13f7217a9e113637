package redis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend"
)

// Which failures an acknowledged write survives depends on settings of the server. Each new connection checks the
// settings that it can see:
//
//	maxmemory-policy other than noeviction      refused
//	an AOF that cannot be replayed              refused; see checkReplay
//	durability replica, and no replica          changes are refused; see [core.checkReplica]
//	no AOF, or appendfsync other than always    a line in the log, once for each server

// replayedCommands returns the commands that a transaction writes into the AOF, with arguments for a key.
func replayedCommands(key string) [][]any {
	return [][]any{
		{"multi"},
		{"set", key, "x"},
		{"del", key},
		{"hset", key, "f", "x"},
		{"zadd", key, "0", "x"},
		{"zrem", key, "x"},
		{"xadd", key, "*", "f", "x"},
		{"xtrim", key, "maxlen", "0"},
		{"exec"},
	}
}

// checkReplay returns an error for a server that would lose changes when it restarts. A server replays its AOF with the
// rights of the user "default". If that user may not run one of the commands in a transaction, the server skips the
// transaction without an error, whichever user has written it (https://github.com/redis/redis/issues/14541). If the
// rights of that user cannot be read, a warning is logged.
func (s *session) checkReplay(ctx context.Context, cn *goredis.Conn, info map[string]string) error {
	if info["aof_enabled"] != "1" {
		return nil
	}
	pipe := cn.Pipeline()
	var dryRuns []*goredis.Cmd
	for _, command := range replayedCommands(s.core.shards[0].meta) {
		dryRuns = append(dryRuns, pipe.Do(ctx, append([]any{"acl", "dryrun", "default"}, command...)...))
	}
	_, _ = pipe.Exec(ctx)
	for i, cmd := range dryRuns {
		answer, err := cmd.Text()
		switch {
		case err != nil && !replied(err):
			return &refusal{err: fmt.Errorf("acl dryrun: %w", err)}
		case err != nil:
			s.core.logged.once("replay "+info["run_id"], func() {
				s.core.cfg.Logger.Warn("the server has an AOF, and it cannot be seen whether its user default may run the commands in it; if it may not, all changes are lost when the server is restarted",
					zap.String("how", "give the gateway's user +acl|dryrun, or see the ACL in docs/redis.md"), zap.Error(err))
			})
			return nil
		case answer != "OK":
			command, _ := replayedCommands("")[i][0].(string)
			return refuse("the server has an AOF and its user default may not run %s, so the server would drop every change at its next start (redis issue 14541); "+
				"give that user its rules back, which nobody can use while it is off: user default off ~* &* +@all", strings.ToUpper(command))
		}
	}
	return nil
}

// warnDurability logs which failures an acknowledged change does not survive, as far as the settings of the server are
// visible.
func (s *session) warnDurability(ctx context.Context, cn *goredis.Conn, info map[string]string) {
	if info["aof_enabled"] == "" {
		return
	}
	s.core.logged.once("durability "+info["run_id"], func() {
		log := s.core.cfg.Logger
		if info["aof_enabled"] == "0" {
			log.Warn("the server has no AOF: when it is killed, all changes since its last snapshot are lost, however they were acknowledged")
			return
		}
		fsync, err := cn.ConfigGet(ctx, "appendfsync").Result()
		if err == nil && fsync["appendfsync"] != "always" {
			log.Warn("the last changes are lost when power is lost: the server does not write its AOF to disk before it answers", zap.String("appendfsync", fsync["appendfsync"]))
		}
	})
}

// logOnce remembers which messages were logged. The zero value is empty.
type logOnce struct {
	mu   sync.Mutex
	keys map[string]bool // guarded by mu
}

// once calls log, unless once was called with the same key before.
func (t *logOnce) once(key string, log func()) {
	t.mu.Lock()
	known := t.keys[key]
	if t.keys == nil {
		t.keys = map[string]bool{}
	}
	t.keys[key] = true
	t.mu.Unlock()
	if !known {
		log()
	}
}

// replicaLife is how long a replica that was seen is assumed to exist.
const replicaLife = time.Second

// NoReplicaError means that some shards accept no changes with [DurabilityReplica], because their servers have no
// replica.
type NoReplicaError struct {
	// Shards are the numbers of the shards whose servers have no replica.
	Shards []int
}

// Error implements error.
func (e *NoReplicaError) Error() string {
	var shards []string
	for _, i := range e.Shards {
		shards = append(shards, strconv.Itoa(i))
	}
	return "shard " + strings.Join(shards, ", ") + ": " + e.Detail()
}

// Detail returns a text that is added to the error for the caller.
func (*NoReplicaError) Detail() string {
	return "the Redis primary has no replica, and redis-durability is replica; no change is made until it has one"
}

// Is reports whether target is [backend.ErrUnavailable].
func (e *NoReplicaError) Is(target error) bool { return target == backend.ErrUnavailable }

// checkReplica returns an error if changes need a replica and the server of the shard has none. Otherwise a change
// would be applied and then wait in vain for its confirmation.
func (c *core) checkReplica(ctx context.Context, sh *shard, on *goredis.Client) error {
	if c.cfg.Durability != DurabilityReplica {
		return nil
	}
	last := &c.replicas[sh.index]
	if seen := last.Load(); seen != 0 && time.Since(time.Unix(0, seen)) < replicaLife {
		return nil
	}
	text, err := on.Info(ctx, "replication").Result()
	if err != nil {
		return &refusal{err: fmt.Errorf("info: %w", err)}
	}
	for line := range strings.Lines(text) {
		count, found := strings.CutPrefix(strings.TrimSpace(line), "connected_slaves:")
		if n, err := strconv.Atoi(count); found && err == nil && n == 0 {
			last.Store(0)
			return &NoReplicaError{Shards: []int{sh.index}}
		}
	}
	last.Store(time.Now().UnixNano())
	return nil
}

// Ready returns an error if the store cannot serve requests: a server does not answer or is out of memory, or a shard
// lacks a replica that changes need.
func (s *Store) Ready(ctx context.Context) error {
	if _, err := s.Position(ctx); err != nil {
		return err
	}
	if s.core.full.Load() {
		if err := s.read(ctx, "ready", s.core.checkSpace); err != nil {
			return err
		}
	}
	if s.core.cfg.Durability != DurabilityReplica || s.core.cfg.ReadOnly {
		return nil
	}
	return s.read(ctx, "ready", func(ctx context.Context, ses *session) error {
		var missing []int
		for i := range s.core.shards {
			on, err := ses.primary(ctx, &s.core.shards[i])
			if err != nil {
				return err
			}
			err = s.core.checkReplica(ctx, &s.core.shards[i], on)
			switch {
			case errors.As(err, new(*NoReplicaError)):
				missing = append(missing, i)
			case err != nil:
				return err
			}
		}
		if len(missing) > 0 {
			return &NoReplicaError{missing}
		}
		return nil
	})
}

// noteFull records that a server has refused a change because it is out of memory.
func (c *core) noteFull(cause error) {
	if !c.full.Swap(true) {
		c.cfg.Logger.Error("the server has no memory left; the store takes no changes until there is some", zap.Error(cause))
	}
}

// noteSpace records that a server has accepted a change.
func (c *core) noteSpace() {
	if c.full.Load() && c.full.Swap(false) {
		c.cfg.Logger.Info("the server has memory again")
	}
}

// checkSpace returns [backend.ErrNoSpace] if the server of a shard is out of memory.
func (c *core) checkSpace(ctx context.Context, ses *session) error {
	for i := range c.shards {
		on, err := ses.primary(ctx, &c.shards[i])
		if err != nil {
			return err
		}
		text, err := on.Info(ctx, "memory").Result()
		if err != nil {
			return err
		}
		var used, most int64
		for line := range strings.Lines(text) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
			switch name {
			case "used_memory":
				used, _ = strconv.ParseInt(value, 10, 64)
			case "maxmemory":
				most, _ = strconv.ParseInt(value, 10, 64)
			}
		}
		if most > 0 && used >= most {
			return fmt.Errorf("shard %d: %w", i, backend.ErrNoSpace)
		}
	}
	c.noteSpace()
	return nil
}
