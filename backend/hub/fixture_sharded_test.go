package hub_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/memory"
)

// sharded is a store of several shards, each one in memory, that can be cut off
// and can lose a shard.
type sharded struct {
	mu     sync.Mutex
	config memory.Config
	age    time.Duration // of the clock: every shard that begins anew is of a later epoch
	shards []*memory.Store
	down   chan struct{} // closed while the store is cut off
	// watches counts those that were opened.
	watches int
	n       int
}

var (
	_ backend.Store   = (*sharded)(nil)
	_ backend.Sharder = (*sharded)(nil)
)

func newSharded(t testing.TB, n int, cfg memory.Config) *sharded {
	t.Helper()
	s := &sharded{config: cfg, shards: make([]*memory.Store, n), down: make(chan struct{})}
	for i := range s.shards {
		s.lose(i)
	}
	t.Cleanup(func() {
		for _, shard := range s.shards {
			_ = shard.Close()
		}
	})
	return s
}

// lose begins a shard again: a log of another epoch that holds the named resources and nothing
// else. Nobody can follow the shard before they are in it.
func (s *sharded) lose(i int, names ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.age += time.Minute
	age, cfg := s.age, s.config
	cfg.Clock = func() time.Time { return time.Now().Add(age) }
	cfg.Data = nil
	cfg.Rand = rand.New(rand.NewPCG(uint64(age), 1))
	next, err := memory.Open(cfg)
	if err != nil {
		panic(err)
	}
	for _, name := range names {
		s.n++
		if _, err := next.Apply(context.Background(), put(key(s.inShard(i), name), s.n)); err != nil {
			panic(err)
		}
	}
	if s.shards[i] != nil {
		_ = s.shards[i].Close()
	}
	s.shards[i] = next
}

// cut makes the store unavailable, and all its watches.
func (s *sharded) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.down)
}

func (s *sharded) mend() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = make(chan struct{})
}

// up returns the shards, or says that the store is cut off.
func (s *sharded) up() ([]*memory.Store, chan struct{}, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.down:
		return nil, nil, backend.ErrUnavailable
	default:
		return append([]*memory.Store(nil), s.shards...), s.down, nil
	}
}

func (s *sharded) Shard(namespace string) int {
	if namespace == "" {
		return 0
	}
	h := fnv.New32()
	_, _ = h.Write([]byte(namespace))
	return int(h.Sum32() % uint32(len(s.shards)))
}

func (s *sharded) Apply(ctx context.Context, b backend.Batch) (backend.Result, error) {
	shards, _, err := s.up()
	if err != nil {
		return backend.Result{}, err
	}
	return shards[s.Shard(b.Actions[0].Key.Namespace)].Apply(ctx, b)
}

func (s *sharded) Get(context.Context, ...backend.Key) ([]*backend.Resource, error) {
	panic("not used")
}

func (s *sharded) Range(context.Context, backend.Range) (backend.Page, error) { panic("not used") }

func (s *sharded) Position(ctx context.Context) (backend.Position, error) {
	shards, _, err := s.up()
	if err != nil {
		return backend.Position{}, err
	}
	at := make([]backend.Revision, len(shards))
	for i, shard := range shards {
		p, err := shard.Position(ctx)
		if err != nil {
			return backend.Position{}, fmt.Errorf("%w: %w", backend.ErrUnavailable, err) // it begins anew
		}
		at[i] = p.Shard(0)
	}
	return backend.NewPosition(at...), nil
}

func (s *sharded) Watch(ctx context.Context, w backend.Watch) (backend.Watcher, error) {
	shards, down, err := s.up()
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.watches++
	s.mu.Unlock()
	if w.From.IsZero() {
		if w.From, err = s.Position(ctx); err != nil {
			return nil, err
		}
	}
	if w.From.Shards() != len(shards) {
		return nil, backend.ErrPositionExpired
	}
	m := &merged{at: w.From, caughtUp: make([]bool, len(shards)), down: down, found: make(chan found)}
	var lost []int
	for i, shard := range shards {
		one, err := shard.Watch(ctx, backend.Watch{From: backend.NewPosition(w.From.Shard(i)), MaxLag: 1 << 20})
		if err != nil {
			lost = append(lost, i)
			continue
		}
		m.watchers = append(m.watchers, one)
	}
	if lost != nil {
		m.closeAll()
		return nil, &backend.ExpiredError{Shards: lost}
	}
	m.ctx, m.stop = context.WithCancel(context.Background())
	for i := range m.watchers {
		go m.pump(i)
	}
	return m, nil
}

// merged is the watch over all shards, in the order in which they answer.
type merged struct {
	at       backend.Position
	watchers []backend.Watcher
	caughtUp []bool
	marked   bool
	err      error
	down     chan struct{}
	found    chan found
	ctx      context.Context
	stop     context.CancelFunc
}

type found struct {
	shard int
	backend.Delivery
	err error
}

func (m *merged) closeAll() {
	for _, w := range m.watchers {
		w.Close()
	}
}

func (m *merged) pump(i int) {
	for {
		d, err := m.watchers[i].Next(m.ctx)
		select {
		case m.found <- found{shard: i, Delivery: d, err: err}:
		case <-m.ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

func (m *merged) Close() {
	m.stop()
	m.closeAll()
}

func (m *merged) Next(ctx context.Context) (backend.Delivery, error) {
	for m.err == nil {
		select {
		case <-ctx.Done():
			return backend.Delivery{}, ctx.Err()
		case <-m.down:
			m.err = backend.ErrUnavailable
		case <-m.ctx.Done():
			m.err = backend.ErrClosed
		case f := <-m.found:
			if f.err != nil { // the shard was closed because it began anew, or it was trimmed
				m.err = &backend.ExpiredError{Shards: []int{f.shard}}
				continue
			}
			for i := range f.Events {
				m.at = m.at.With(f.shard, f.Events[i].Revision)
				f.Events[i].Position = m.at
			}
			m.at = m.at.With(f.shard, f.Position.Shard(0))
			m.caughtUp[f.shard] = m.caughtUp[f.shard] || f.CaughtUp
			f.CaughtUp = false
			if !m.marked && !contains(m.caughtUp, false) {
				m.marked, f.CaughtUp = true, true
			}
			if f.CaughtUp || len(f.Events) > 0 {
				return backend.Delivery{Events: f.Events, CaughtUp: f.CaughtUp, Position: m.at}, nil
			}
		}
	}
	return backend.Delivery{}, m.err
}

func contains(list []bool, want bool) bool {
	for _, b := range list {
		if b == want {
			return true
		}
	}
	return false
}

// write stores a resource and returns the revision of the change.
func (s *sharded) write(t testing.TB, key backend.Key) backend.Revision {
	t.Helper()
	rev, err := s.tryWrite(key)
	if err != nil {
		t.Fatal(err)
	}
	return rev
}

func (s *sharded) tryWrite(key backend.Key) (backend.Revision, error) {
	s.mu.Lock()
	s.n++
	batch := put(key, s.n)
	s.mu.Unlock()
	res, err := s.Apply(context.Background(), batch)
	if err != nil {
		return backend.Revision{}, err
	}
	return res.Revisions[0], nil
}

// put returns the n-th batch of a store, which stores a resource.
func put(key backend.Key, n int) backend.Batch {
	return backend.Batch{
		RequestID: fmt.Sprint("request-", n), Deadline: time.Now().Add(24 * time.Hour),
		Actions: []backend.Action{{Key: key, Op: backend.OpPut, Put: backend.Put{UID: "u", Body: []byte("j1")}}},
	}
}

func (s *sharded) position(t testing.TB) backend.Position {
	t.Helper()
	p, err := s.Position(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// inShard returns a namespace of a shard.
func (s *sharded) inShard(shard int) string {
	for i := 0; ; i++ {
		if ns := fmt.Sprint("ns", i); s.Shard(ns) == shard {
			return ns
		}
	}
}

func key(namespace, name string) backend.Key {
	return backend.Key{Kind: "Net", Namespace: namespace, Name: name}
}
