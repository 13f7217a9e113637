package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/storekit"
)

// maxRecord is an upper bound for the size of a record. A resource has at most 1 MiB ([backend.MaxResourceBytes]), but
// its record is larger if bytes of its references are escaped.
const maxRecord = 2 << 20

// maxLoad is the maximum number of records that one command reads.
const maxLoad = 256

// Get implements [backend.Store].
func (s *Store) Get(ctx context.Context, keys ...backend.Key) ([]*backend.Resource, error) {
	return s.get(ctx, keys, decodeRecord)
}

// GetBare implements [backend.BareGetter].
func (s *Store) GetBare(ctx context.Context, keys ...backend.Key) ([]*backend.Resource, error) {
	return s.get(ctx, keys, bareRecord)
}

func (s *Store) get(
	ctx context.Context, keys []backend.Key, decode func(backend.Key, string) (*backend.Resource, error),
) ([]*backend.Resource, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	if len(keys) > backend.MaxKeys {
		return nil, fmt.Errorf("get: %d keys, at most %d: %w", len(keys), backend.MaxKeys, backend.ErrInvalid)
	}
	if len(keys) == 0 {
		return []*backend.Resource{}, nil
	}
	var out []*backend.Resource
	err := s.read(ctx, "get", func(ctx context.Context, ses *session) error {
		l := loader{store: s, session: ses, room: backend.MaxPageBytes}
		if err := l.measure(ctx, keys); err != nil {
			return err
		}
		records, err := l.load(ctx, keys)
		if err != nil {
			return err
		}
		out = make([]*backend.Resource, 0, len(records))
		size := 0
		for i, record := range records {
			var r *backend.Resource
			if record != "" {
				r, err = decode(keys[i], record)
			}
			switch {
			case err != nil && len(keys) == 1:
				return storekit.Unreadable(keys[i], err)
			case err != nil:
				s.core.skip("get", keys[i], err)
				r, err = nil, nil
			case r != nil && r.ExpiredAt(l.time(ctx, keys[i])):
				r = nil
			}
			if r != nil {
				size += r.Size()
				if size > backend.MaxPageBytes && i > 0 {
					return nil
				}
			}
			out = append(out, r)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// loader reads records for one call, at most room bytes at a time.
type loader struct {
	store   *Store
	session *session
	room    int
	// largest is the size of the largest record in the shards; 0 if it is not known.
	largest int
	// clock is the time of the server, if there is only one. times caches, for each shard, the time of its server.
	clock time.Time
	times map[int]time.Time
}

// measure reads the size of the largest record. It does nothing if there is only one key, because load reads one record
// of any size.
func (l *loader) measure(ctx context.Context, keys []backend.Key) error {
	if len(keys) == 1 {
		return nil
	}
	pipe := l.session.client.Pipeline()
	cmds := map[int]*goredis.StringCmd{}
	for _, k := range keys {
		if sh := l.store.shard(k.Namespace); cmds[sh.index] == nil {
			cmds[sh.index] = askLargest(ctx, pipe, sh)
		}
	}
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, goredis.Nil) {
		return err
	}
	for _, cmd := range cmds {
		l.noteLargest(cmd)
	}
	return nil
}

// askLargest adds a command that reads the size of the largest record or log entry ever written to a shard.
func askLargest(ctx context.Context, pipe goredis.Pipeliner, sh *shard) *goredis.StringCmd {
	return pipe.HGet(ctx, sh.meta, "largest")
}

func (l *loader) noteLargest(cmd *goredis.StringCmd) {
	l.largest = max(l.largest, int(parseLargest(cmd.Val())))
}

// parseLargest returns the size that askLargest has read, at least 1. If it is missing or malformed, the result is
// maxRecord.
func parseLargest(stored string) int64 {
	if n, err := strconv.ParseInt(stored, 10, 32); err == nil {
		return max(n, 1)
	}
	return maxRecord
}

// load reads the records of the first keys, as many as there is room for, but at least one. A record that does not
// exist is "".
func (l *loader) load(ctx context.Context, keys []backend.Key) ([]string, error) {
	largest := l.largest
	if largest == 0 {
		largest = maxRecord
	}
	if len(keys)*largest > l.room && len(keys) > 1 {
		n, err := l.fit(ctx, keys)
		if err != nil {
			return nil, err
		}
		keys = keys[:n]
	}
	pipe := l.session.client.Pipeline()
	var clock *goredis.TimeCmd
	if l.clock.IsZero() {
		clock = l.store.askTime(ctx, pipe)
	}
	cmds := make([]*goredis.SliceCmd, 0, 1)
	var at [][]int // for each command, the indexes of its keys
	byShard := make(map[int][]int, 1)
	for i, k := range keys {
		n := l.store.Shard(k.Namespace)
		byShard[n] = append(byShard[n], i)
	}
	for n, places := range byShard {
		for part := range slices.Chunk(places, maxLoad) {
			items := make([]string, len(part))
			for j, i := range part {
				items[j] = l.store.core.shards[n].key(keys[i])
			}
			cmds, at = append(cmds, pipe.MGet(ctx, items...)), append(at, part)
		}
	}
	sent := time.Now()
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, goredis.Nil) {
		return nil, err
	}
	if clock != nil || l.clock.IsZero() {
		l.clock = l.store.noteTime(clock, sent)
	}
	out := make([]string, len(keys))
	for c, cmd := range cmds {
		for j, v := range cmd.Val() {
			out[at[c][j]], _ = v.(string)
		}
	}
	return out, nil
}

// fit returns how many of the first records there is room for. It reads their sizes.
func (l *loader) fit(ctx context.Context, keys []backend.Key) (int, error) {
	pipe := l.session.client.Pipeline()
	cmds := make([]*goredis.IntCmd, len(keys))
	for i, k := range keys {
		cmds[i] = pipe.StrLen(ctx, l.store.shard(k.Namespace).key(k))
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return 0, err
	}
	n, room := 0, l.room
	for n < len(keys) && (n == 0 || int(cmds[n].Val()) <= room) {
		room -= int(cmds[n].Val())
		n++
	}
	return n, nil
}

// time returns the time of the server that has the shard of a key.
func (l *loader) time(ctx context.Context, k backend.Key) time.Time {
	if !l.store.core.at.Cluster {
		return l.clock
	}
	return l.shardTime(ctx, l.store.shard(k.Namespace))
}

// shardTime estimates the time of the server that has a shard. The result stays the same during the call.
func (l *loader) shardTime(ctx context.Context, sh *shard) time.Time {
	at, ok := l.times[sh.index]
	if !ok {
		if l.times == nil {
			l.times = map[int]time.Time{}
		}
		at = l.store.nodeTime(ctx, l.session, sh)
		l.times[sh.index] = at
	}
	return at
}

// askTime adds a command that reads the time of the server. It returns nil if there are several servers, or if
// Config.Clock is set.
func (s *Store) askTime(ctx context.Context, pipe goredis.Pipeliner) *goredis.TimeCmd {
	if s.core.cfg.Clock != nil || s.core.at.Cluster {
		return nil
	}
	return pipe.Time(ctx)
}

func (s *Store) noteTime(cmd *goredis.TimeCmd, since time.Time) time.Time {
	if cmd == nil || cmd.Err() != nil {
		return s.core.now()
	}
	s.core.clocks.note("", cmd.Val(), since, time.Now())
	return cmd.Val().UTC()
}

// skip counts and logs a resource that does not decode.
func (c *core) skip(operation string, k backend.Key, err error) {
	c.unreadable.Add(1)
	c.cfg.Logger.Warn(
		"a resource does not decode", zap.String("operation", operation), zap.Stringer("key", k), zap.Error(err),
	)
}

// Range implements [backend.Store].
func (s *Store) Range(ctx context.Context, r backend.Range) (backend.Page, error) {
	return storekit.First(s.Ranges(ctx, []backend.Range{r}))
}

// Ranges implements [backend.Ranger]. The members of the ranges are read from one state of each shard. The resources
// may be newer, but each still has the property by which it was found.
func (s *Store) Ranges(ctx context.Context, rs []backend.Range) ([]backend.Page, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	if err := backend.ValidateRanges(rs, len(s.core.shards)); err != nil {
		return nil, err
	}
	return s.ranges(ctx, rs)
}

// scanTries is how often ranges are read if something changes between two steps. The last try reads as much as possible
// in one step.
const scanTries = 3

func (s *Store) ranges(ctx context.Context, rs []backend.Range) (pages []backend.Page, err error) {
	if len(rs) == 0 {
		return []backend.Page{}, nil
	}
	deep := map[*backend.Range]bool{}
	err = s.read(ctx, "range", func(ctx context.Context, ses *session) error {
		for try := 1; ; try++ {
			sc := newScanner(s, ses, rs, deep, try)
			if pages, err = sc.scan(ctx); err != nil || !sc.moved || sc.last {
				return err
			}
		}
	})
	return pages, err
}

// Position implements [backend.Store]. It reads the ends of the logs from the primaries.
func (s *Store) Position(ctx context.Context) (p backend.Position, err error) {
	if err := s.ready(ctx); err != nil {
		return backend.Position{}, err
	}
	err = s.read(ctx, "position", func(ctx context.Context, ses *session) error {
		pipe := ses.client.Pipeline()
		clock := s.askTime(ctx, pipe)
		cmds := make([]*goredis.SliceCmd, len(s.core.shards))
		for i := range s.core.shards {
			cmds[i] = pipe.HMGet(ctx, s.core.shards[i].meta, "epoch", "seq")
		}
		sent := time.Now()
		if _, err := pipe.Exec(ctx); err != nil {
			return err
		}
		s.noteTime(clock, sent)
		heads := make([]backend.Revision, len(cmds))
		for i, cmd := range cmds {
			state, err := s.readState(ses, i, cmd.Val())
			if err != nil {
				return err
			}
			heads[i] = state.Head()
		}
		if !s.core.current(ses) {
			// The server may no longer be a primary, or may lack the beginning of the new epoch.
			return fmt.Errorf("the epoch has changed: %w", backend.ErrUnavailable)
		}
		p = backend.NewPosition(heads...)
		return nil
	})
	return p, err
}
