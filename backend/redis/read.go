package redis

import (
	"context"
	"errors"
	"fmt"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend"
)

// loadChunk is the most resources that one command reads.
const loadChunk = 256

// Get is [backend.Store.Get].
func (s *Store) Get(ctx context.Context, keys ...backend.Key) ([]*backend.Resource, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	if len(keys) > backend.MaxKeys {
		return nil, fmt.Errorf("get: %d keys, at most %d: %w", len(keys), backend.MaxKeys, backend.ErrInvalid)
	}
	out := make([]*backend.Resource, len(keys))
	if len(keys) == 0 {
		return out, nil
	}
	err := s.read(ctx, "get", func(ctx context.Context, ses *session) error {
		records, now, err := s.load(ctx, ses, keys)
		if err != nil {
			return err
		}
		shared := names{}
		for i, k := range keys {
			out[i] = nil
			if records[i] == "" {
				continue
			}
			r, err := shared.record(k, records[i])
			if err != nil && len(keys) == 1 {
				return unreadable(k, err)
			}
			if err != nil {
				s.core.skip("get", k, err)
				continue
			}
			if !r.ExpiredAt(now) {
				out[i] = r
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// load reads the records of keys, empty where there is none, and the time.
func (s *Store) load(ctx context.Context, ses *session, keys []backend.Key) ([]string, time.Time, error) {
	pipe := ses.client.Pipeline()
	clock := s.askTime(ctx, pipe)
	type part struct {
		at  []int
		cmd *goredis.SliceCmd
	}
	var parts []part
	byShard := make(map[int][]int, 1)
	for i, k := range keys {
		n := s.Shard(k.Namespace)
		byShard[n] = append(byShard[n], i)
	}
	for n, at := range byShard {
		for len(at) > 0 {
			chunk := at[:min(loadChunk, len(at))]
			at = at[len(chunk):]
			names := make([]string, len(chunk))
			for j, i := range chunk {
				names[j] = s.core.shards[n].key(keys[i])
			}
			parts = append(parts, part{chunk, pipe.MGet(ctx, names...)})
		}
	}
	asked := time.Now()
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, goredis.Nil) {
		return nil, time.Time{}, err
	}
	out := make([]string, len(keys))
	for _, p := range parts {
		for j, v := range p.cmd.Val() {
			out[p.at[j]], _ = v.(string)
		}
	}
	return out, s.tellTime(clock, asked), nil
}

// askTime asks the server for the time along with other things; nil where there
// is no one server to ask, or a clock was given.
func (s *Store) askTime(ctx context.Context, pipe goredis.Pipeliner) *goredis.TimeCmd {
	if s.core.cfg.Clock != nil || s.core.at.Cluster {
		return nil
	}
	return pipe.Time(ctx)
}

func (s *Store) tellTime(asked *goredis.TimeCmd, since time.Time) time.Time {
	if asked == nil || asked.Err() != nil {
		return s.core.now()
	}
	s.core.clock.note(asked.Val(), since, time.Now())
	return asked.Val().UTC()
}

// skip counts and logs a resource that does not decode.
func (c *core) skip(operation string, k backend.Key, err error) {
	c.unreadable.Add(1)
	c.cfg.Logger.Warn("a resource does not decode", zap.String("operation", operation), zap.Stringer("key", k), zap.Error(err))
}

// Range is [backend.Store.Range].
func (s *Store) Range(ctx context.Context, r backend.Range) (backend.Page, error) {
	if err := s.ready(ctx); err != nil {
		return backend.Page{}, err
	}
	if err := r.Validate(); err != nil {
		return backend.Page{}, err
	}
	pages, err := s.ranges(ctx, []backend.Range{r})
	if err != nil {
		return backend.Page{}, err
	}
	return pages[0], nil
}

// Ranges is [backend.Ranger.Ranges]. What is in a page was in its range at one
// state of each shard; the resources may be newer, and still have the row that
// led to them.
func (s *Store) Ranges(ctx context.Context, rs []backend.Range) ([]backend.Page, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	if err := backend.ValidateRanges(rs); err != nil {
		return nil, err
	}
	return s.ranges(ctx, rs)
}

// scanTries is how often ranges are read again because a resource was moved
// between reading its row and reading it; then it is left out.
const scanTries = 3

func (s *Store) ranges(ctx context.Context, rs []backend.Range) (pages []backend.Page, err error) {
	if len(rs) == 0 {
		return []backend.Page{}, nil
	}
	err = s.read(ctx, "range", func(ctx context.Context, ses *session) error {
		for try := 1; ; try++ {
			sc := &scanner{store: s, session: ses, last: try == scanTries, names: names{}}
			if pages, err = sc.scan(ctx, rs); err != nil || !sc.moved || sc.last {
				return err
			}
		}
	})
	return pages, err
}

// Position is [backend.Store.Position].
func (s *Store) Position(ctx context.Context) (p backend.Position, err error) {
	if err := s.ready(ctx); err != nil {
		return backend.Position{}, err
	}
	err = s.read(ctx, "position", func(ctx context.Context, ses *session) error {
		pipe := ses.client.Pipeline()
		clock := s.askTime(ctx, pipe)
		cmds := make([]*goredis.SliceCmd, len(s.core.shards))
		for i := range s.core.shards {
			cmds[i] = askState(ctx, pipe, &s.core.shards[i])
		}
		asked := time.Now()
		if _, err := pipe.Exec(ctx); err != nil {
			return err
		}
		s.tellTime(clock, asked)
		heads := make([]backend.Revision, len(cmds))
		for i, cmd := range cmds {
			state, err := s.readState(ses, i, cmd.Val())
			if err != nil {
				return err
			}
			heads[i] = state.Head()
		}
		p = backend.NewPosition(heads...)
		return nil
	})
	return p, err
}
