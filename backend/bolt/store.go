// Package bolt stores resources in a single file, with go.etcd.io/bbolt. It is the embedded store of a gateway. Data,
// references and log change in one transaction, and everything that Apply has acknowledged is on disk.
//
//	commit.go, writer.go   how batches become a transaction
//	core.go, read.go       reads: no change is shown before it is on disk
//	file.go, space.go      the states of a file that cannot be written
//	meta.go, encode.go     what the file has
//
// The package starts at most two goroutines: one commits while calls are queued, and one reopens the file. The last
// Close waits for both.
package bolt

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/storekit"
	"github.com/sluicegw/sluice/internal/slab"
)

// Store implements [backend.Store] in a file. Several Stores can share an open file: see [Store.Handle].
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
	_ storekit.LogReader = logReader{}
)

// Open opens the file, or creates it, and begins a new epoch in it. If the file is open elsewhere, the error is
// ErrLocked. If it is damaged, belongs to another program or has another format, the error is [backend.ErrFormat].
func Open(cfg Config) (*Store, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("bolt: %w", err)
	}
	c := &core{
		cfg:      cfg.withDefaults(),
		closing:  make(chan struct{}),
		slots:    make(chan struct{}, queueCalls),
		gathered: make(chan struct{}, 1),
		forms:    slab.Slab[byte]{Chunk: formBytes, Keep: formBytes},
		handles:  1,
	}
	db, log, err := c.openFile()
	if err != nil {
		return nil, err
	}
	c.install(db, log, nil)
	return &Store{core: c, closed: make(chan struct{})}, nil
}

// Handle returns another Store on the same open file. The file is closed when its last Store is closed. If s is closed,
// the new Store is closed too.
func (s *Store) Handle() *Store {
	h := &Store{core: s.core, closed: make(chan struct{})}
	s.core.mu.Lock()
	defer s.core.mu.Unlock()
	if s.usable() != nil {
		h.once.Do(func() { close(h.closed) })
		return h
	}
	s.core.handles++
	return h
}

// Close ends the store's watchers. Closing the last handle also waits for commits in progress and closes the file. All
// later calls return ErrClosed.
func (s *Store) Close() (err error) {
	s.once.Do(func() {
		s.core.mu.Lock()
		close(s.closed)
		s.core.mu.Unlock()
		if err = s.core.release(); err != nil {
			err = fmt.Errorf("bolt: close: %w", err)
		}
	})
	return err
}

// Now returns the time of the store's clock, in UTC.
func (s *Store) Now() time.Time { return s.core.cfg.Clock().UTC() }

// Unreadable returns how often a read has skipped a resource that does not decode.
func (s *Store) Unreadable() uint64 { return s.core.unreadable.Load() }

// WritesWaiting returns the number of batches that wait for their transaction.
func (s *Store) WritesWaiting() int {
	s.core.mu.Lock()
	defer s.core.mu.Unlock()
	return len(s.core.queue)
}

// Apply implements [backend.Store].
func (s *Store) Apply(ctx context.Context, b backend.Batch) (backend.Result, error) {
	if err := s.ready(ctx); err != nil {
		return backend.Result{}, err
	}
	if s.core.cfg.ReadOnly {
		return backend.Result{}, backend.ErrReadOnly
	}
	if err := b.Validate(nil); err != nil {
		return backend.Result{}, err
	}
	w := &call{batch: b, size: b.Size()}
	if err := s.core.submit(ctx, w); err != nil {
		return backend.Result{}, err
	}
	return w.result, nil
}

// Get implements [backend.Store].
func (s *Store) Get(ctx context.Context, keys ...backend.Key) ([]*backend.Resource, error) {
	return s.get(ctx, keys, false)
}

// GetBare implements [backend.BareGetter].
func (s *Store) GetBare(ctx context.Context, keys ...backend.Key) ([]*backend.Resource, error) {
	return s.get(ctx, keys, true)
}

func (s *Store) get(ctx context.Context, keys []backend.Key, bare bool) ([]*backend.Resource, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	if len(keys) > backend.MaxKeys {
		return nil, fmt.Errorf("get: %d keys, at most %d: %w", len(keys), backend.MaxKeys, backend.ErrInvalid)
	}
	return s.core.get(ctx, keys, bare)
}

// Range implements [backend.Store].
func (s *Store) Range(ctx context.Context, r backend.Range) (backend.Page, error) {
	return storekit.First(s.Ranges(ctx, []backend.Range{r}))
}

// Ranges implements [backend.Ranger].
func (s *Store) Ranges(ctx context.Context, rs []backend.Range) ([]backend.Page, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	if err := backend.ValidateRanges(rs, 1); err != nil {
		return nil, err
	}
	return s.core.ranges(ctx, rs)
}

// Position implements [backend.Store].
func (s *Store) Position(ctx context.Context) (backend.Position, error) {
	if err := s.ready(ctx); err != nil {
		return backend.Position{}, err
	}
	if at := s.core.head.Load(); at != nil {
		return *at, nil
	}
	if err := s.core.awaitAbandoned(ctx); err != nil {
		return backend.Position{}, err
	}
	if _, err := s.core.database(ctx); err != nil {
		return backend.Position{}, err
	}
	s.core.mu.Lock()
	defer s.core.mu.Unlock()
	return backend.NewPosition(s.core.state.Head()), nil
}

// Watch implements [backend.Store].
func (s *Store) Watch(ctx context.Context, w backend.Watch) (backend.Watcher, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	if err := s.core.awaitAbandoned(ctx); err != nil {
		return nil, err
	}
	return storekit.NewLogWatcher(ctx, logReader{s}, w)
}

// logReader reads the log for the watchers of one handle.
type logReader struct{ s *Store }

// ReadLog implements [storekit.LogReader].
func (r logReader) ReadLog(ctx context.Context, after backend.Revision, limit int) (storekit.LogPage, error) {
	if err := r.s.ready(ctx); err != nil {
		return storekit.LogPage{}, err
	}
	page, err := r.s.core.readLog(ctx, after, limit)
	page.Closed = r.s.closed
	return page, err
}

// Purge removes a limited number of expired resources, and trims the log. It returns the number of resources that it
// has removed. With Config.ReadOnly it does nothing.
func (s *Store) Purge(ctx context.Context) (int, error) {
	if err := s.ready(ctx); err != nil || s.core.cfg.ReadOnly {
		return 0, err
	}
	w := &call{}
	err := s.core.submit(ctx, w)
	return w.purged, err
}

// Run purges at intervals of PurgeInterval until ctx ends or the store is closed, neither of which is an error. A purge
// that fails is logged and repeated at the next interval.
func (s *Store) Run(ctx context.Context) error {
	tick := time.NewTicker(s.core.cfg.PurgeInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.closed:
			return nil
		case <-tick.C:
		}
		for n := purgeRound; n == purgeRound; {
			var err error
			if n, err = s.Purge(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, backend.ErrClosed) &&
				!errors.Is(err, backend.ErrNoSpace) {
				s.core.cfg.Logger.Error("purge", zap.Error(err))
			}
		}
	}
}

// usable returns ErrClosed if the handle is closed.
func (s *Store) usable() error {
	select {
	case <-s.closed:
		return backend.ErrClosed
	default:
		return nil
	}
}

func (s *Store) ready(ctx context.Context) error {
	if err := s.usable(); err != nil {
		return err
	}
	return ctx.Err()
}

var _ backend.Heads = (*Store)(nil)

// Head implements [backend.Heads]. It also works while the file is being reopened, because core.state has everything
// that was acknowledged.
func (s *Store) Head(ctx context.Context) (backend.Position, error) {
	if err := s.ready(ctx); err != nil {
		return backend.Position{}, err
	}
	if at := s.core.head.Load(); at != nil {
		return *at, nil
	}
	s.core.mu.Lock()
	at := s.core.state.Head()
	s.core.mu.Unlock()
	return backend.NewPosition(at), nil
}
