package hub_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/hub"
	"github.com/sluicegw/sluice/backend/memory"
)

// written is what a model knows of the log: per shard the changes in order.
type written struct {
	mu  sync.Mutex
	log [][]change
}

type change struct {
	rev backend.Revision
	key backend.Key
}

// listener is a subscriber of the model and what it saw since its place.
type listener struct {
	t      *testing.T
	store  *sharded
	hub    *hub.Hub
	rnd    *rand.Rand
	scope  map[string]bool // namespaces; nil for all
	kind   string          // "" for all
	from   backend.Position
	at     backend.Position
	seen   []change
	marks  int
	checks func(l *listener)
	// These count what happened.
	events, resumed, expired, lagged int
}

func (l *listener) covers(k backend.Key) bool {
	return (l.scope == nil || l.scope[k.Namespace]) && (l.kind == "" || l.kind == k.Kind)
}

func (l *listener) watch() (*hub.Watcher, error) {
	w := hub.Watch{From: l.at, Covers: l.covers}
	for ns := range l.scope {
		w.Namespaces = append(w.Namespaces, ns)
	}
	return l.hub.Watch(context.Background(), w)
}

// follow listens until it has reached the end, through whatever happens.
func (l *listener) follow(end func() (backend.Position, bool)) {
	for !l.stretch(end) {
	}
	l.checks(l)
}

// stretch is one watch; true says that the end was reached.
func (l *listener) stretch(end func() (backend.Position, bool)) bool {
	w, err := l.watch()
	if err == nil {
		defer w.Close()
		if l.at.IsZero() {
			l.from, l.at = w.Position(), w.Position()
		}
	}
	for marked := false; err == nil; {
		if final, ok := end(); ok && l.reached(w.Position(), final) {
			l.at = w.Position()
			return true
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(l.rnd.Int64N(int64(20*time.Millisecond))))
		var d backend.Delivery
		d, err = w.Next(ctx)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) {
			err = nil
			continue
		}
		if d.CaughtUp {
			if marked {
				l.t.Error("a second mark of having caught up")
			}
			marked = true
			l.marks++
		}
		for _, e := range d.Events {
			l.seen = append(l.seen, change{e.Revision, e.Resource.Key})
			l.events++
			l.at = e.Position
			if l.rnd.IntN(40) == 0 {
				l.resumed++
				return false // resumes after this one
			}
		}
		if err == nil {
			l.at = d.Position
			if l.rnd.IntN(3) == 0 {
				l.at = w.Position()
			}
			if l.rnd.IntN(20) == 0 {
				time.Sleep(time.Duration(l.rnd.Int64N(int64(50 * time.Millisecond)))) // of the bubble
			}
		}
	}
	var lagged *backend.LaggedError
	switch {
	case errors.As(err, &lagged):
		l.lagged++
		l.at = lagged.Position
	case errors.Is(err, backend.ErrPositionExpired):
		l.expired++
		l.checks(l)
		l.seen, l.from, l.at = nil, backend.Position{}, backend.Position{}
	case errors.Is(err, backend.ErrUnavailable):
		time.Sleep(10 * time.Millisecond) // of the bubble
	default:
		l.t.Errorf("listener: %v", err)
		return true
	}
	return false
}

// shards are those that the listener covers.
func (l *listener) shards() (out []int) {
	for i := range l.store.shards {
		covered := l.scope == nil
		for ns := range l.scope {
			covered = covered || l.store.Shard(ns) == i
		}
		if covered {
			out = append(out, i)
		}
	}
	return out
}

func (l *listener) reached(p, q backend.Position) bool {
	for _, i := range l.shards() {
		if p.Shard(i).Compare(q.Shard(i)) < 0 {
			return false
		}
	}
	return true
}

// check compares what was seen between two places with the log.
func (w *written) check(l *listener) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, i := range l.shards() {
		var want []change
		for _, c := range w.log[i] {
			if l.covers(c.key) && c.rev.Compare(l.from.Shard(i)) > 0 && c.rev.Compare(l.at.Shard(i)) <= 0 {
				want = append(want, c)
			}
		}
		var got []change
		for _, c := range l.seen {
			if l.store.Shard(c.key.Namespace) == i {
				got = append(got, c)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			l.t.Errorf("shard %d from %v to %v:\ngot  %v\nwant %v", i, l.from.Shard(i), l.at.Shard(i), got, want)
		}
	}
}

// TestHub_Model lets writers, listeners at all cursors, cuts of the store and lost
// shards come in any order. Whoever listens sees every covered change after its
// cursor exactly once and in the order of its shard, or is told that it cannot.
func TestHub_Model(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { model(t, seed) })
		})
	}
}

func model(t *testing.T, seed uint64) {
	const shards, writes, listeners = 3, 1500, 24
	rnd := rand.New(rand.NewPCG(seed, 7))
	cfg := memory.Config{}
	if seed%4 == 3 {
		cfg.LogEntries = 250
	}
	store := newSharded(t, shards, cfg)
	// Small queues lag and begin anew; the largest never do.
	h, err := hub.New(hub.Config{Store: store, Events: []int{4, 30, 1 << 20}[seed%3], Rand: rand.New(rand.NewPCG(seed, 8))})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- h.Run(ctx) }()
	w := &written{log: make([][]change, shards)}
	var mu sync.Mutex
	var final backend.Position
	cursors := []backend.Position{store.position(t)}
	end := func() (backend.Position, bool) {
		mu.Lock()
		defer mu.Unlock()
		return final, !final.IsZero()
	}
	var wg sync.WaitGroup
	var all []*listener
	start := func() {
		l := &listener{t: t, store: store, hub: h, rnd: rand.New(rand.NewPCG(seed, uint64(len(all)))), checks: w.check}
		if rnd.IntN(3) > 0 {
			l.scope = map[string]bool{fmt.Sprint("ns", rnd.IntN(8)): true, fmt.Sprint("ns", rnd.IntN(8)): true}
		}
		l.kind = []string{"", "A", "B"}[rnd.IntN(3)]
		if rnd.IntN(4) > 0 {
			l.from = cursors[rnd.IntN(len(cursors))]
			l.at = l.from
		}
		all = append(all, l)
		wg.Go(func() { l.follow(end) })
	}
	down := false
	for i := range writes {
		k := backend.Key{Kind: []string{"A", "B", "_internal"}[rnd.IntN(3)], Namespace: fmt.Sprint("ns", rnd.IntN(8)), Name: fmt.Sprint(i)}
		if !down {
			w.mu.Lock()
			rev := store.write(t, k)
			if !k.Internal() {
				w.log[store.Shard(k.Namespace)] = append(w.log[store.Shard(k.Namespace)], change{rev, k})
			}
			w.mu.Unlock()
			if rnd.IntN(10) == 0 {
				cursors = append(cursors, store.position(t))
			}
		}
		switch n := rnd.IntN(400); {
		case n < 2 && !down:
			store.cut()
			down = true
		case n < 20 && down:
			store.mend()
			down = false
		case n == 30 && !down && seed%2 == 1:
			store.lose(rnd.IntN(shards))
		case n > 300:
			time.Sleep(time.Duration(rnd.Int64N(int64(2 * time.Millisecond)))) // of the bubble
		}
		if i%(writes/listeners) == 0 {
			start()
		}
	}
	if down {
		store.mend()
	}
	for i := range 8 { // a last change that everybody gets to
		k := key(fmt.Sprint("ns", i), "last")
		rev := store.write(t, k)
		w.mu.Lock()
		w.log[store.Shard(k.Namespace)] = append(w.log[store.Shard(k.Namespace)], change{rev, k})
		w.mu.Unlock()
	}
	at := store.position(t)
	mu.Lock()
	final = at
	mu.Unlock()
	wg.Wait()
	stop()
	if err := <-ran; err != nil {
		t.Errorf("run: %v", err)
	}
	events, resumed, expired, lagged := 0, 0, 0, 0
	for _, l := range all {
		events += l.events
		resumed, expired, lagged = resumed+l.resumed, expired+l.expired, lagged+l.lagged
	}
	t.Logf("%d events to %d listeners, %d resumed, %d expired, %d lagged", events, len(all), resumed, expired, lagged)
}
