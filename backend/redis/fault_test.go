package redis_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/redis"
	"github.com/sluicegw/sluice/internal/redistest"
)

// groups bounds how many topologies run at once: a machine that is starved
// makes Sentinels and cluster nodes believe that their peers are dead.
var groups = make(chan struct{}, 3)

// parallel lets a test run beside others, as far as groups allows.
func parallel(t *testing.T) {
	t.Parallel()
	groups <- struct{}{}
	t.Cleanup(func() { <-groups })
}

// What every trial has.
const (
	writers    = 6
	namespaces = 5
	// prelude is the number of acknowledged batches before the fault.
	prelude = 150
	// callTimeout of the gateways, and how long a batch may be judged.
	callTimeout   = time.Second
	batchDeadline = 2 * time.Second
)

// setup of a trial.
type setup struct {
	seed uint64
	// urls of the gateways, one each.
	urls       []string
	shards     int
	durability redis.Durability
	watchers   int
	// lossy: acknowledged batches may be lost. expires: watchers may be told that
	// their position has expired. Where they are false, one is an error.
	lossy, expires bool
	// unchecked: the log was damaged so that Check must complain.
	unchecked bool
}

// trial is writers and watchers on gateways of their own, while something goes
// wrong. It keeps what the writers were told and what the watchers saw, and at
// the end holds one against the other and against the store.
type trial struct {
	*testing.T
	setup
	prefix    string
	stores    []*redis.Store
	start     backend.Position
	history   history
	gate      gate
	watched   []*observer
	released  chan struct{} // closed when parked watchers go on
	work      sync.WaitGroup
	stop      context.CancelFunc
	stopWatch context.CancelFunc
}

// runTrial opens the gateways on an empty store, writes, lets the fault happen in
// the middle of more writes, and judges what came of it.
func runTrial(t *testing.T, s setup, fault func(*trial)) *trial {
	t.Helper()
	tr := openTrial(t, s)
	for tr.history.acknowledged() < prelude {
		tr.write(writers, nil)
	}
	tr.awaitParked()
	fault(tr)
	close(tr.released) // parked watchers meet what the fault has left
	tr.write(60, nil)
	tr.finish()
	return tr
}

// openPatiently opens a store whose calls have little time, which on a busy
// machine a connection may take for itself. No fault has happened yet.
func openPatiently(ctx context.Context, cfg redis.Config) (st *redis.Store, err error) {
	for until := time.Now().Add(30 * time.Second); time.Now().Before(until); {
		if st, err = redis.Open(ctx, cfg); !errors.Is(err, backend.ErrUnavailable) {
			break
		}
	}
	return st, err
}

func openTrial(t *testing.T, s setup) *trial {
	t.Helper()
	t.Logf("seed %d", s.seed)
	tr := &trial{T: t, setup: s, prefix: redistest.Prefix(), released: make(chan struct{})}
	tr.history.attempts = map[string]*attempt{}
	tr.gate.cond.L = &tr.gate.mu
	ctx, cancel := context.WithCancel(context.Background())
	watching, cancelWatch := context.WithCancel(ctx)
	tr.stop, tr.stopWatch = cancel, cancelWatch
	t.Cleanup(tr.end)
	for i, url := range s.urls {
		st, err := openPatiently(t.Context(), redis.Config{
			URL: url, Prefix: tr.prefix, Shards: s.shards, Durability: s.durability,
			Rand: rand.New(rand.NewPCG(s.seed, uint64(i))), Timeout: callTimeout, PurgeInterval: 200 * time.Millisecond,
		})
		if err != nil {
			t.Fatalf("open gateway %d: %v", i, err)
		}
		tr.stores = append(tr.stores, st)
		tr.work.Go(func() {
			if err := st.Run(ctx); err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("run of gateway %d: %v", i, err)
			}
		})
	}
	start, err := tr.stores[0].Position(t.Context())
	if err != nil {
		t.Fatalf("position: %v", err)
	}
	tr.start = start
	for i := range s.watchers {
		o := newObserver(tr, i)
		tr.watched = append(tr.watched, o)
		tr.work.Go(func() { o.run(watching) })
	}
	for i := range writers {
		w := &writer{tr: tr, id: i, rnd: rand.New(rand.NewPCG(s.seed, uint64(100+i)))}
		tr.work.Go(func() { w.run(ctx) })
	}
	return tr
}

// end stops everything, also after a failure.
func (tr *trial) end() {
	tr.stop()
	tr.gate.shut()
	tr.work.Wait()
	for _, s := range tr.stores {
		if err := s.Close(); err != nil {
			tr.Errorf("close: %v", err)
		}
	}
}

// write lets the writers make n more attempts and returns when all have ended.
// In their middle it calls fault, while the writers go on.
func (tr *trial) write(n int, fault func()) {
	tr.gate.open(n)
	if fault != nil {
		tr.gate.await(n / 2)
		fault()
	}
	tr.gate.await(0)
}

// gate gives the writers their attempts.
type gate struct {
	mu   sync.Mutex
	cond sync.Cond
	left int // not begun
	busy int // begun and not ended
	done bool
}

func (g *gate) open(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.left += n
	g.cond.Broadcast()
}

// pass waits for an attempt; false means that there are no more.
func (g *gate) pass() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.left == 0 && !g.done {
		g.cond.Wait()
	}
	if g.done {
		return false
	}
	g.left--
	g.busy++
	return true
}

func (g *gate) ended() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.busy--
	g.cond.Broadcast()
}

// await returns when at most n attempts have not ended.
func (g *gate) await(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.left+g.busy > n && !g.done {
		g.cond.Wait()
	}
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.done = true
	g.cond.Broadcast()
}

// key i of a namespace.
func faultKey(namespace, i int) backend.Key {
	return backend.Key{Kind: faultKinds()[i%2], Namespace: fmt.Sprint("ns", namespace), Name: fmt.Sprint("n", i)}
}

func faultKinds() []string { return []string{"Net", "Port"} }

// keysPerNamespace is small, so that writers meet.
const keysPerNamespace = 6

// markerKey is written last in each namespace.
func markerKey(namespace int) backend.Key {
	return backend.Key{Kind: "Net", Namespace: fmt.Sprint("ns", namespace), Name: "marker"}
}
