// Package redis stores resources in Redis: on a single server, on a server that Sentinels monitor, or on a cluster. Any
// number of gateways can share a store. A script checks the conditions of a batch and changes data, index and log in
// one step of the server.
//
// A store has one or more shards. The namespace of a resource determines its shard. A shard has these keys, which are
// in one slot of a cluster (shard.go):
//
//	meta      hash         format, epoch, head and bounds of the log
//	members   sorted set   the index: members by which resources are found (member.go)
//	log       stream       the changes; the ids of its entries are the revisions (entry.go)
//	item...   string       one for each resource: its record (record.go)
//
// A revision is an epoch and a number. A shard begins a new epoch if its server does not continue the history in which
// the last epoch was begun, for example after a fail-over (epoch.lua).
//
// Calls use a session: connections that were verified in the current epoch. When the epoch changes, a new session takes
// its place. The old one is closed when the calls that use it have ended:
//
//	read calls    read       -> acquire -> exchange                  repeated for a second
//	Apply         propose    -> acquire -> writeQueue -> batch.lua   repeated if it was certainly not applied (apply.go)
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

// Store implements [backend.Store] on Redis.
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

// core is the part of a store that communicates with the servers.
type core struct {
	cfg     Config
	at      *Address
	scripts scripts
	shards  []shard
	bounds  [4]any // of logs, see logBounds
	// epochs has the last known epoch of each shard.
	epochs []atomic.Uint64
	// largest has, for each shard, the size of the largest record or log entry ever written to it, as of the last read
	// of its log; 0 before the first read.
	largest []atomic.Int64
	// heads has the newest revision that this gateway has seen of each shard.
	heads []atomic.Pointer[backend.Revision]
	// begun reports whether this gateway has begun an epoch.
	begun  atomic.Bool
	clocks *clocks
	// lostHistories counts the losses that noteHistory has logged as errors.
	lostHistories atomic.Uint64
	// full reports whether a server has refused the last change because it was out of memory.
	full atomic.Bool
	// logged remembers which messages were logged.
	logged logOnce
	// replicas has, for each shard, when its server was last seen with a replica, in nanoseconds since 1970; 0 for
	// never.
	replicas []atomic.Int64
	// unreadable is the number of resources that reads have skipped.
	unreadable atomic.Uint64
	// questions makes callers share questions about the heads; lastHeads is the last answer. skipPause ends the pause
	// of a watcher when a reader of the heads needs changes that the watcher has not read.
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

// Open connects to the servers, and creates the store if it does not exist. It returns [backend.ErrUnavailable] if a
// server does not answer. It returns [backend.ErrFormat], and has written nothing, if a server is not suitable or has
// data of another program or in another format.
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

// enter connects to the server of each shard. Each new connection verifies the shards of its server.
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

// Close ends the store's watchers and closes its connections. It waits for calls in progress, at most Config.Timeout. A
// change whose answer is cut off has an unknown outcome. All later calls return ErrClosed.
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

// acquire returns the current session. It remains open until the caller calls inflight.Done.
func (c *core) acquire(s *Store) (*session, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing || s.isClosed() {
		return nil, backend.ErrClosed
	}
	c.session.inflight.Add(1)
	return c.session, nil
}

// background runs a function in a goroutine that Close waits for. It returns false if the store is closed.
func (c *core) background(run func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closing {
		c.running.Go(run)
	}
	return !c.closing
}

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

// knownHead returns the newest revision of a shard that this gateway has seen; zero if there is none.
func (c *core) knownHead(shard int) backend.Revision {
	if r := c.heads[shard].Load(); r != nil {
		return *r
	}
	return backend.Revision{}
}

// noteHead records the head of a shard's log, unless a newer one is known.
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

// Now returns the time of the servers in UTC, as estimated by this gateway.
func (s *Store) Now() time.Time { return s.core.now() }

// Unreadable returns how often a read has skipped a resource that does not decode.
func (s *Store) Unreadable() uint64 { return s.core.unreadable.Load() }

// ready returns an error if the store is closed or ctx has ended.
func (s *Store) ready(ctx context.Context) error {
	if s.isClosed() {
		return backend.ErrClosed
	}
	return ctx.Err()
}
