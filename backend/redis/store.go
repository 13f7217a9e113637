// Package redis keeps resources on Redis: on one server, on one that Sentinels
// watch over, or on a cluster. Any number of gateways can share a store. One
// script per batch judges the conditions and changes data, index and log in one
// step of the server.
//
// A store has one or more shards. A resource belongs to the shard of its namespace. A shard has these
// keys, all in one slot of a cluster (shard.go):
//
//	meta      hash         format, epoch, head and bounds of the log
//	members   sorted set   the index: members that lead to resources (member.go)
//	log       stream       the changes; the ids of its entries are the revisions (entry.go)
//	item...   string       one for each resource: its record (record.go)
//
// A revision is an epoch and a number. A shard begins a new epoch when its server does not continue the
// history in which the last one was begun, after a failover for example (epoch.lua).
//
// Calls use a session: connections that were verified in the current epoch. When the epoch changes, a new
// session replaces it, and the old one is closed when the calls that use it have ended:
//
//	read calls    read       -> acquire -> exchange                  repeated for a second
//	Apply         propose    -> acquire -> writeQueue -> batch.lua   repeated if it was not judged (apply.go)
//	watchers      in a goroutine of their own, on connections that wait on the server (watcher.go)
package redis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend"
)

// Store is a [backend.Store] on Redis.
type Store struct {
	core   *core
	once   sync.Once
	closed chan struct{}
}

var (
	_ backend.Store      = (*Store)(nil)
	_ backend.Ranger     = (*Store)(nil)
	_ backend.BareGetter = (*Store)(nil)
	_ backend.Clock      = (*Store)(nil)
	_ backend.Sharder    = (*Store)(nil)
	_ backend.Syncer     = (*Store)(nil)
)

// core is the part of a store that knows its servers.
type core struct {
	cfg     Config
	at      *Address
	scripts scripts
	shards  []shard
	bounds  [4]any // of logs, see logBounds
	// epochs are the last known epochs, by shard.
	epochs []atomic.Uint64
	// largest are the sizes of the largest log entries in the last read of each shard's log.
	largest []atomic.Int64
	// heads are the newest revisions that this gateway saw of each shard.
	heads []atomic.Pointer[backend.Revision]
	// begun reports whether this gateway has begun an epoch.
	begun  atomic.Bool
	clocks *clocks
	// lostHistories counts the losses that noteHistory has logged as errors.
	lostHistories atomic.Uint64
	// full reports whether a server refused the last change for want of memory.
	full atomic.Bool
	// told has the servers about which something was logged.
	told logOnce
	// replicas are the times, in nanoseconds since 1970, at which the server of each shard was last
	// seen with a replica; 0 for never.
	replicas []atomic.Int64
	// unreadable counts resources that reads skipped.
	unreadable atomic.Uint64
	// questions shares questions about the heads; lastHeads is the last answer. skipPause ends the
	// pause of a watcher when a reader of the heads waits for changes that the watcher has not
	// read.
	questions headQuestions
	lastHeads atomic.Pointer[backend.Position]
	skipPause chan struct{}
	randMu    sync.Mutex // guards cfg.Rand

	mu      sync.Mutex // guards session and changes of closing
	session *session
	closing bool
	// running counts the goroutines that read for watchers, ask for heads or close sessions. Close waits for
	// them.
	running sync.WaitGroup
}

// Open connects to the servers and creates the store if there is none. It returns
// [backend.ErrUnavailable] if a server does not answer, and [backend.ErrFormat],
// without having written anything, for an unsuitable server, data of another program or
// another format.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("redis: %w", err)
	}
	at, err := ParseURL(cfg.url())
	if err != nil {
		return nil, fmt.Errorf("redis: %w", err)
	}
	cfg = cfg.withDefaults(at)
	c := newCore(cfg, at)
	c.session = newSession(c)
	c.session.inspecting = true
	s := &Store{core: c, closed: make(chan struct{})}
	err = s.read(ctx, "open", s.inspect)
	if err == nil {
		c.renew(c.session)
		err = s.enter(ctx)
	}
	if err != nil {
		_ = s.Close()
		return nil, fmt.Errorf("redis: %s: %w", at, err)
	}
	return s, nil
}

// enter connects to the server of every shard, which verifies the shard.
func (s *Store) enter(ctx context.Context) error {
	return s.read(ctx, "open", func(ctx context.Context, ses *session) error {
		for i := range s.core.shards {
			sh := &s.core.shards[i]
			if err := ses.client.Exists(ctx, sh.meta).Err(); err != nil {
				return err
			}
			if s.core.epochs[i].Load() == 0 {
				return fmt.Errorf("shard %d has no server: %w", i, backend.ErrUnavailable)
			}
		}
		if err := s.measureAll(ctx, ses); err != nil {
			return err
		}
		return s.core.unfit()
	})
}

// newCore returns a core without connections.
func newCore(cfg Config, at *Address) *core {
	n := cfg.Shards
	return &core{
		cfg:       cfg,
		at:        at,
		scripts:   newScripts(),
		shards:    newShards(cfg.Prefix, n),
		bounds:    logBounds(cfg),
		skipPause: make(chan struct{}, 1),
		clocks:    &clocks{nodes: map[string]*offset{}, refused: map[string]bool{}},
		epochs:    make([]atomic.Uint64, n),
		replicas:  make([]atomic.Int64, n),
		largest:   make([]atomic.Int64, n),
		heads:     make([]atomic.Pointer[backend.Revision], n),
	}
}

// Close ends the store's watchers and closes its connections. It waits for calls in progress, at most
// Config.Timeout: a change whose answer is cut off has an unknown outcome. Every later call returns
// ErrClosed.
func (s *Store) Close() (err error) {
	s.once.Do(func() {
		c := s.core
		c.mu.Lock()
		c.closing = true
		close(s.closed)
		ses := c.session
		c.mu.Unlock()
		if ses != nil {
			// This ends the watchers that wait on the server.
			err = ses.blocking.Close()
			idle := make(chan struct{})
			c.running.Go(func() {
				defer close(idle)
				ses.inflight.Wait()
			})
			patience := time.NewTimer(c.cfg.Timeout)
			defer patience.Stop()
			select {
			case <-idle:
			case <-patience.C:
			}
			err = errors.Join(err, ses.client.Close())
		}
		c.running.Wait()
		if errors.Is(err, goredis.ErrClosed) {
			err = nil
		}
	})
	return err
}

func (s *Store) isClosed() bool {
	select {
	case <-s.closed:
		return true
	default:
		return false
	}
}

// acquire returns the current session, which stays open until the caller calls inflight.Done.
func (c *core) acquire(s *Store) (*session, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing || s.isClosed() {
		return nil, backend.ErrClosed
	}
	c.session.inflight.Add(1)
	return c.session, nil
}

// background runs a function in the background, unless the store is closed.
func (c *core) background(run func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closing {
		c.running.Go(run)
	}
	return !c.closing
}

// current reports whether no other session has replaced this one.
func (c *core) current(s *session) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session == s
}

// renew replaces a session whose epoch is no longer the current one.
func (c *core) renew(old *session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing || c.session != old {
		return
	}
	c.session = newSession(c)
	c.running.Go(func() {
		if err := old.close(); err != nil {
			c.cfg.Logger.Debug("close of old connections", zap.Error(err))
		}
	})
}

func (c *core) random() string {
	c.randMu.Lock()
	defer c.randMu.Unlock()
	return strconv.FormatUint(c.cfg.Rand.Uint64N(1<<20), 10)
}

// knownHead returns the newest revision of a shard that this gateway saw, zero for none.
func (c *core) knownHead(shard int) backend.Revision {
	if r := c.heads[shard].Load(); r != nil {
		return *r
	}
	return backend.Revision{}
}

// noteHead notes the head of a shard's log, unless a newer one is known.
func (c *core) noteHead(shard int, head backend.Revision) {
	for {
		was := c.heads[shard].Load()
		if was != nil && was.Compare(head) >= 0 || c.heads[shard].CompareAndSwap(was, &head) {
			return
		}
	}
}

// Shard implements [backend.Sharder].
func (s *Store) Shard(namespace string) int { return shardOf(namespace, len(s.core.shards)) }

func (s *Store) shard(namespace string) *shard { return &s.core.shards[s.Shard(namespace)] }

// Now returns the time of the servers in UTC, as this gateway estimates it.
func (s *Store) Now() time.Time { return s.core.now() }

// Unreadable returns how often a read skipped a resource that does not decode.
func (s *Store) Unreadable() uint64 { return s.core.unreadable.Load() }

// ready returns an error if a call cannot be made now.
func (s *Store) ready(ctx context.Context) error {
	if s.isClosed() {
		return backend.ErrClosed
	}
	return ctx.Err()
}
