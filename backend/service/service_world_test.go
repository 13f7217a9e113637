package service_test

// The tests of several gateways on one store hold what they answer, with and without the
// index in memory, against what was acknowledged: histories of clients are linearizable
// (history, model), and no read is older than a write that was acknowledged before it began
// (freshness). That every answer is of one state of the store is tested in package query.
//
// They are short. SLUICE_TEST_HISTORIES and SLUICE_TEST_FRESHNESS make them long: numbers of histories, and of writes
// that are read back. SLUICE_TEST_SEED repeats what a run has printed.

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/bolt"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/redis"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/servicetest"
	"github.com/sluicegw/sluice/internal/redistest"
)

// mode is what a gateway keeps in memory.
type mode string

// The modes.
const (
	off mode = "off"
	on  mode = "on"
	// flapping: the index is stopped, started and emptied again and again.
	flapping mode = "flapping"
)

// plan of a history.
type plan struct {
	seed  uint64
	store string
	// modes of the two gateways.
	modes [2]mode
}

func (p plan) String() string {
	return fmt.Sprintf("%s index %s and %s seed %d", p.store, p.modes[0], p.modes[1], p.seed)
}

// planOf is the plan of a seed: all stores and modes take their turns, that of Redis
// more often.
func planOf(seed uint64) plan {
	rnd := rand.New(rand.NewPCG(seed, 1000))
	modes := []mode{off, on, flapping}
	return plan{
		seed: seed, store: []string{"redis", "memory", "redis", "bolt", "redis"}[seed%5],
		modes: [2]mode{modes[rnd.IntN(3)], modes[rnd.IntN(3)]},
	}
}

// What Redis is given, so that a fault is over soon.
const (
	exchangeTime = 250 * time.Millisecond
	writeTime    = 400 * time.Millisecond
	settleTime   = 2 * time.Second
)

// world is two gateways and what can go wrong with them.
type world struct {
	t *testing.T
	plan
	rnd *rand.Rand
	// open opens the store of a gateway.
	open func(i int) (servicetest.Driver, error)
	// server and the proxies before it are nil but for Redis.
	server  *redistest.Server
	proxies []*redistest.Proxy
	// faults by the number of the call before which they happen.
	faults map[int][]func()

	mu       sync.RWMutex // guards gateways
	gateways [2]*servicetest.Gateway
}

func openWorld(t *testing.T, p plan) *world {
	w := &world{t: t, plan: p, rnd: rand.New(rand.NewPCG(p.seed, 2000)), faults: map[int][]func(){}}
	switch p.store {
	case "memory":
		data, err := memory.Open(memory.Config{})
		servicetest.Opened(t, data, err)
		w.open = func(int) (servicetest.Driver, error) { return data.Handle(), nil }
	case "bolt":
		path := filepath.Join(t.TempDir(), "sluice.db")
		var file *bolt.Store
		w.open = func(i int) (s servicetest.Driver, err error) {
			if i == 0 { // the second gateway is opened and closed with the first one
				file, err = bolt.Open(bolt.Config{Path: path})
				return file, err
			}
			return file.Handle(), nil
		}
	case "redis":
		w.server = redistest.Start(t, redistest.AOF("always"))
		prefix := redistest.Prefix()
		for range w.gateways {
			w.proxies = append(w.proxies, redistest.NewProxy(t, w.server.Addr))
		}
		w.open = func(i int) (servicetest.Driver, error) {
			return openPatiently(t, redis.Config{URL: w.proxies[i].URL(), Prefix: prefix, Shards: 1 + int(p.seed/5%2), Timeout: exchangeTime})
		}
	}
	for i := range w.gateways {
		w.begin(i)
	}
	return w
}

// openPatiently opens a store whose calls have little time, which on a busy machine a
// connection may take for itself.
func openPatiently(t *testing.T, cfg redis.Config) (s *redis.Store, err error) {
	for until := time.Now().Add(30 * time.Second); time.Now().Before(until); {
		if s, err = redis.Open(t.Context(), cfg); !errors.Is(err, backend.ErrUnavailable) {
			break
		}
	}
	return s, err
}

// begin starts a gateway.
func (w *world) begin(i int) {
	s, err := w.open(i)
	if err != nil {
		w.t.Errorf("open gateway %d: %v", i, err)
		return // the one before stays, which is closed
	}
	cfg := service.Config{WriteTimeout: writeTime, OutcomeTimeout: settleTime}
	if w.modes[i] == off {
		cfg.IndexMemory = -1
	}
	g := servicetest.NewGateway(w.t, s, cfg)
	g.StartIndex()
	w.mu.Lock()
	w.gateways[i] = g
	w.mu.Unlock()
	if w.modes[i] == on {
		g.WaitFilled()
	}
}

// gateway is one of the two.
func (w *world) gateway(i int) *servicetest.Gateway {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.gateways[i]
}

// end stops both gateways. Calls that are under way fail, or are answered.
func (w *world) end() {
	for i := range w.gateways {
		w.stop(i)
	}
}

func (w *world) stop(i int) {
	g := w.gateway(i)
	g.End()
	if err := g.Store.Close(); err != nil {
		w.t.Errorf("close: %v", err)
	}
}

// restart ends a gateway in the middle of its calls and starts it again.
func (w *world) restart(i int) {
	w.heal()
	if w.store != "bolt" {
		w.stop(i)
		w.begin(i)
		return
	}
	w.end() // both have the same file
	for i := range w.gateways {
		w.begin(i)
	}
}

// schedule says what happens before which of so many calls.
func (w *world) schedule(rnd *rand.Rand, calls int) {
	at := func(n int, f func()) { w.faults[n] = append(w.faults[n], f) }
	for i, m := range w.modes {
		if m != flapping {
			continue
		}
		for n := rnd.IntN(10); n < calls; n += 5 + rnd.IntN(25) {
			switch rnd.IntN(3) {
			case 0:
				at(n, func() { w.gateway(i).LoseIndex() })
			case 1:
				at(n, func() { w.gateway(i).EndIndex() })
			default:
				at(n, func() { w.gateway(i).StartIndex() })
			}
		}
	}
	faults := []func(n int){func(n int) { at(n, func() { w.restart(n % 2) }) }}
	if w.server != nil {
		faults = append(faults, w.networkFaults(at)...)
	}
	for n := 20 + rnd.IntN(40); n < calls-10; n += 30 + rnd.IntN(60) {
		faults[rnd.IntN(len(faults))](n)
	}
	at(calls, w.heal)
}

// networkFaults are those of Redis and of the way to it, from a call on.
func (w *world) networkFaults(at func(n int, f func())) []func(n int) {
	return []func(n int){
		func(n int) { at(n, w.proxies[n%2].Cut) },
		func(n int) { at(n, w.proxies[n%2].Cut) },
		func(n int) {
			at(n, w.proxies[n%2].Pause)
			at(n+15, w.proxies[n%2].Resume)
		},
		func(n int) {
			at(n, w.proxies[n%2].Pause)
			at(n+10, w.proxies[n%2].Cut)
			at(n+12, w.proxies[n%2].Resume)
		},
		func(n int) { at(n, func() { w.proxies[n%2].DropReplies(1+n%3, redistest.Command("EVALSHA")) }) },
		func(n int) {
			at(n, w.server.Stop)
			at(n+clients, w.server.Cont)
		},
		func(n int) {
			at(n, w.heal)
			at(n, w.server.Restart)
		},
		func(n int) {
			at(n, w.heal)
			at(n, func() { w.server.Do("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes") })
		},
	}
}

// due lets happen what is planned before a call. Only one goroutine at a time calls it.
func (w *world) due(n int) {
	for _, f := range w.faults[n] {
		f()
	}
}

// heal ends what has not ended.
func (w *world) heal() {
	for _, p := range w.proxies {
		p.Resume()
	}
	if w.server != nil {
		w.server.Cont()
	}
}

// TestService_HistoriesAreLinearizable judges what clients of two gateways were told while these,
// Redis and the way to it fail. SLUICE_TEST_HISTORIES says how many histories.
func TestService_HistoriesAreLinearizable(t *testing.T) {
	first := servicetest.Setting(t, "SLUICE_TEST_SEED", rand.Uint64N(1<<32))
	n := servicetest.Setting(t, "SLUICE_TEST_HISTORIES", servicetest.Sized(6, 2))
	parallel := make(chan struct{}, 4)
	var outcomes tally
	t.Cleanup(func() { t.Logf("SLUICE_TEST_SEED=%d: %s", first, outcomes.String()) })
	for seed := first; seed < first+n; seed++ {
		p := planOf(seed)
		t.Run(p.String(), func(t *testing.T) {
			t.Parallel()
			parallel <- struct{}{}
			defer func() { <-parallel }()
			history := runHistory(t, p)
			outcomes.add(history)
			if why := contradiction(history); why != "" {
				report(t, history)
				t.Errorf("SLUICE_TEST_SEED=%d SLUICE_TEST_HISTORIES=1 (%s): %s", seed, p, why)
			}
		})
	}
}
