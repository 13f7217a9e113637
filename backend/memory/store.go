// Package memory is a store in the memory of the process. Other drivers are compared with it. It is also useful for
// tests and trials: nothing is kept when the process ends.
package memory

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/storekit"
)

// Store is a [backend.Store] in memory. Several stores may share the same data, see [Store.Handle].
type Store struct {
	cfg    *Config
	data   *Data
	once   sync.Once
	closed chan struct{} // closed under data.mu
}

var (
	_ backend.Store      = (*Store)(nil)
	_ backend.Ranger     = (*Store)(nil)
	_ backend.Clock      = (*Store)(nil)
	_ storekit.LogReader = logReader{}
)

// Open opens a store and begins a new epoch. It returns ErrUnavailable if the data is already in use by another store.
func Open(cfg Config) (*Store, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("memory: %w", err)
	}
	cfg = cfg.withDefaults()
	d := cfg.Data
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.handles > 0 {
		return nil, fmt.Errorf("memory: the data is open already: %w", backend.ErrUnavailable)
	}
	epoch, err := backend.NextEpoch(d.state.Head().Epoch, cfg.Clock(), cfg.Rand)
	if err != nil {
		return nil, fmt.Errorf("memory: %w", err)
	}
	d.state.Begin(epoch)
	d.handles++
	return &Store{cfg: &cfg, data: d, closed: make(chan struct{})}, nil
}

// Handle returns another store on the same data. The data is no longer in use when all handles are closed. A handle of
// a closed store is closed.
func (s *Store) Handle() *Store {
	h := &Store{cfg: s.cfg, data: s.data, closed: make(chan struct{})}
	s.data.mu.Lock()
	defer s.data.mu.Unlock()
	if s.isClosed() {
		h.once.Do(func() { close(h.closed) })
		return h
	}
	s.data.handles++
	return h
}

// Close closes the store and ends its watchers. Later calls return ErrClosed.
func (s *Store) Close() error {
	s.once.Do(func() {
		s.data.mu.Lock()
		defer s.data.mu.Unlock()
		close(s.closed)
		s.data.handles--
	})
	return nil
}

// Now returns the present time of the store's clock, in UTC.
func (s *Store) Now() time.Time { return s.cfg.Clock().UTC() }

// Apply implements [backend.Store].
func (s *Store) Apply(ctx context.Context, b backend.Batch) (backend.Result, error) {
	if err := s.lock(ctx, &s.data.mu); err != nil {
		return backend.Result{}, err
	}
	defer s.data.mu.Unlock()
	if err := b.Validate(nil); err != nil {
		return backend.Result{}, err
	}
	now := s.Now()
	res, changes, err := storekit.Evaluate(b, now, &s.data.state, s.data)
	if err != nil {
		return backend.Result{}, err
	}
	s.data.commit(changes)
	s.data.trim(s.cfg, now)
	res.Position = backend.NewPosition(s.data.state.Head())
	return res, nil
}

// Get implements [backend.Store].
func (s *Store) Get(ctx context.Context, keys ...backend.Key) ([]*backend.Resource, error) {
	if err := s.lock(ctx, s.data.mu.RLocker()); err != nil {
		return nil, err
	}
	defer s.data.mu.RUnlock()
	if len(keys) > backend.MaxKeys {
		return nil, fmt.Errorf("get: %d keys, at most %d: %w", len(keys), backend.MaxKeys, backend.ErrInvalid)
	}
	now, size := s.Now(), 0
	out := make([]*backend.Resource, 0, len(keys))
	for i, k := range keys {
		r, _ := s.data.Stored(k)
		if r != nil && r.ExpiredAt(now) {
			r = nil
		}
		if r != nil {
			size += r.Size()
			if size > backend.MaxPageBytes && i > 0 {
				break
			}
		}
		out = append(out, r)
	}
	return out, nil
}

// Range implements [backend.Store].
func (s *Store) Range(ctx context.Context, r backend.Range) (backend.Page, error) {
	return storekit.First(s.Ranges(ctx, []backend.Range{r}))
}

// Ranges implements [backend.Ranger].
func (s *Store) Ranges(ctx context.Context, rs []backend.Range) ([]backend.Page, error) {
	if err := s.lock(ctx, s.data.mu.RLocker()); err != nil {
		return nil, err
	}
	defer s.data.mu.RUnlock()
	if err := backend.ValidateRanges(rs, 1); err != nil {
		return nil, err
	}
	out := make([]backend.Page, len(rs))
	b := storekit.NewPageBuilder(s.Now())
	for i, r := range rs {
		b.Next(r)
		if err := s.data.scan(ctx, r, b.Add); err != nil {
			return nil, err
		}
		out[i] = b.Page()
	}
	return out, nil
}

// Position implements [backend.Store].
func (s *Store) Position(ctx context.Context) (backend.Position, error) {
	if err := s.lock(ctx, s.data.mu.RLocker()); err != nil {
		return backend.Position{}, err
	}
	defer s.data.mu.RUnlock()
	return backend.NewPosition(s.data.state.Head()), nil
}

// Watch implements [backend.Store].
func (s *Store) Watch(ctx context.Context, w backend.Watch) (backend.Watcher, error) {
	return storekit.NewLogWatcher(ctx, logReader{s}, w)
}

// logReader reads the log for the watchers of a store.
type logReader struct{ s *Store }

// ReadLog implements [storekit.LogReader].
func (r logReader) ReadLog(ctx context.Context, after backend.Revision, limit int) (storekit.LogPage, error) {
	if err := r.s.lock(ctx, r.s.data.mu.RLocker()); err != nil {
		return storekit.LogPage{}, err
	}
	defer r.s.data.mu.RUnlock()
	page := r.s.data.readLog(after, limit)
	page.Closed = r.s.closed
	return page, nil
}

// Purge removes expired resources and old entries of the log, up to a limit for one call. It returns the number of
// removed resources.
func (s *Store) Purge(ctx context.Context) (int, error) {
	if err := s.lock(ctx, &s.data.mu); err != nil {
		return 0, err
	}
	defer s.data.mu.Unlock()
	now := s.Now()
	changes := s.data.expired(now)
	s.data.commit(changes)
	s.data.trim(s.cfg, now)
	return len(changes), nil
}

// Run calls Purge after each PurgeInterval. It returns nil when ctx ends or the store is closed.
func (s *Store) Run(ctx context.Context) error {
	tick := time.NewTicker(s.cfg.PurgeInterval)
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
			n, _ = s.Purge(ctx) // fails only when ctx has ended or the store is closed
		}
	}
}

func (s *Store) isClosed() bool {
	select {
	case <-s.closed:
		return true
	default:
		return false
	}
}

// lock locks l, which is data.mu or its RLocker. If ctx has ended or the store is closed, it unlocks l and returns an
// error.
func (s *Store) lock(ctx context.Context, l sync.Locker) error {
	l.Lock()
	err := ctx.Err()
	if s.isClosed() {
		err = backend.ErrClosed
	}
	if err != nil {
		l.Unlock()
	}
	return err
}
