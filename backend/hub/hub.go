// Package hub follows the changes of a store once for the whole gateway, and passes them on to any number of watches.
// Each watch has a bounded queue. The hub never waits for a watch, and nothing is polled.
//
//	Run                          follows the store again and again until ctx ends
//	 '- follow                   one watch of the store
//	     |- resetLost            gives the hub a new position: at the start, and when the store
//	     |                       cannot continue the old one
//	     '- publish              each delivery of the store
//	         |- Follower.Deliver     the index, first
//	         '- table.dispatch       finds the watches that a change concerns
//	             '- Watcher.offer        queues the change and wakes the watch
//
//	Watcher.Next                 the caller's goroutine
//	 |- TryNext                  takes what is queued, once the watch is live
//	 '- read                     until then: reads the store's log
//
// The hub merges the changes of several shards into one order: a live event has the position of the hub after it. A
// watch that resumes from an older position is first attached, so that new changes are put into its queue. Then it
// reads the store's log up to the position at which it was attached. If it reads further, it skips the queued changes
// that it has already read. watchState describes the states of a watch.
//
// The hub starts no goroutines: it works in the goroutine that calls Run, and a watch in the one that calls Next.
// Nothing is stored on disk: a new hub begins at the present position.
//
// Locks are taken in the order Hub.relay, Hub.mu, Watcher.mu:
//
//	Hub.relay   one delivery or reset at a time; the followers
//	Hub.mu      the position, and which watches are attached
//	Watcher.mu  the state and the queue of one watch
package hub

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/internal/wait"
)

// Hub follows one store. All methods are safe for concurrent use.
type Hub struct {
	cfg Config
	// clock returns the time of the store's clock.
	clock func() time.Time
	// replays has an element for each watch that is reading the store's log.
	replays chan struct{}

	// running reports whether Run is active.
	running atomic.Bool
	// lagged counts the watches that ended because they were too slow.
	lagged atomic.Uint64
	// position is the position up to which the hub has followed the store; nil while it does not follow it. It is
	// written with mu locked and read without.
	position atomic.Pointer[backend.Position]

	// relay makes deliveries happen one at a time. Followers are called with relay locked but mu unlocked, so that they
	// do not block users of mu.
	relay     sync.Mutex
	followers []Follower // guarded by relay

	mu sync.Mutex // guards all below
	// tables maps the attribute of a Lookup to the attached watches with that attribute. Watches without a Lookup are
	// under nil.
	tables map[Attribute]*lookupTable
	// alone is the set of watches that began while the hub had no position. They are attached when it has one.
	alone map[*Watcher]struct{}
	// subscribers is the number of reservations.
	subscribers int
}

// Errors of this package.
var (
	// ErrFull means that there are already Config.MaxSubscribers subscribers.
	ErrFull = errors.New("too many subscribers")
	// ErrIdle means that there was no change before the deadline of [Watcher.NextBefore].
	ErrIdle = errors.New("no change came in time")
	// ErrRunning means that Run was called while another Run is active.
	ErrRunning = errors.New("hub runs already")
)

// New returns a hub. It starts nothing. Until Run follows the store, each watch follows the store by itself.
func New(cfg Config) (*Hub, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("hub: %w", err)
	}
	cfg = cfg.withDefaults()
	return &Hub{
		cfg:     cfg,
		clock:   backend.ClockOf(cfg.Store),
		replays: make(chan struct{}, maxReplays),
		alone:   map[*Watcher]struct{}{},
		tables:  map[Attribute]*lookupTable{},
	}, nil
}

// Position returns the position up to which the hub has followed the store; zero while it does not follow it.
func (h *Hub) Position() backend.Position {
	if p := h.position.Load(); p != nil {
		return *p
	}
	return backend.Position{}
}

// Reserve counts a subscriber, or returns [ErrFull]. A subscriber is a stream of a client, which may use any number of
// watches. The watches are not counted, because the gateway itself uses some too. release ends the reservation; further
// calls of it have no effect.
func (h *Hub) Reserve() (release func(), err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.subscribers >= h.cfg.MaxSubscribers {
		return nil, ErrFull
	}
	h.subscribers++
	return sync.OnceFunc(func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.subscribers--
	}), nil
}

// Subscribers returns the number of subscribers.
func (h *Hub) Subscribers() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.subscribers
}

// NoteLagged counts a subscriber that was too slow for a stream which it shares with others.
func (h *Hub) NoteLagged() { h.lagged.Add(1) }

// Lagged returns how many watches have ended because they were too slow, plus the number of calls of NoteLagged.
func (h *Hub) Lagged() uint64 { return h.lagged.Load() }

// Queues describes the queues of all watches.
type Queues struct {
	// Watches is the number of open watches.
	Watches int `json:"watches"`
	// Events is the number of queued events in all queues, and Longest the number in the longest queue.
	Events  int `json:"events"`
	Longest int `json:"longest"`
}

// Queues returns the state of the queues. It visits all watches, and no change is delivered meanwhile.
func (h *Hub) Queues() Queues {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := Queues{Watches: len(h.alone)}
	for _, t := range h.tables {
		out.Watches += len(t.watches)
		for _, w := range t.watches {
			w.mu.Lock()
			events := len(w.queue)
			w.mu.Unlock()
			out.Events += events
			out.Longest = max(out.Longest, events)
		}
	}
	return out
}

// The shortest and the longest pause between two attempts to watch the store. They are short, because after an outage
// all streams, and all lists from the index, wait for the hub.
const (
	minPause = 50 * time.Millisecond
	maxPause = 500 * time.Millisecond
)

// followLag is by how many events the hub's own watch may fall behind. It is large, because a hub that was too slow
// could only resume from the same position.
const followLag = 1 << 20

// Run follows the store until ctx ends or the store is closed, neither of which is an error. Then all watches end with
// [backend.ErrClosed]. While the store does not answer, the watches wait. If the log of a shard cannot be continued,
// the live watches that cover the shard end with [backend.ErrPositionExpired]; the others continue.
func (h *Hub) Run(ctx context.Context) error {
	if !h.running.CompareAndSwap(false, true) {
		return ErrRunning
	}
	defer h.end()
	lost, backoff := loss{shards: allShards()}, wait.Backoff{Least: minPause, Most: maxPause, Rand: h.cfg.Rand}
	for {
		answered, progress, err := h.follow(ctx, &lost)
		if ctx.Err() != nil || errors.Is(err, backend.ErrClosed) {
			return nil
		}
		if answered {
			backoff.Reset()
		}
		resumable := errors.Is(err, backend.ErrPositionExpired) || errors.Is(err, backend.ErrLagged)
		h.report(err, resumable || backoff.First())
		if resumable && progress {
			continue
		}
		if !backoff.Wait(ctx) {
			return nil
		}
	}
}

func (h *Hub) report(err error, warn bool) {
	if warn {
		h.cfg.Logger.Warn("following the store's changes was interrupted", zap.Error(err))
	} else {
		h.cfg.Logger.Debug("following the store's changes is still interrupted", zap.Error(err))
	}
}

// follow resets the lost shards, and then publishes the deliveries of one watch of the store until that watch ends.
// After that, lost has the shards to be reset before the next attempt. answered reports whether the store has delivered
// anything, and progress whether it has delivered events.
func (h *Hub) follow(ctx context.Context, lost *loss) (answered, progress bool, err error) {
	if err := h.resetLost(ctx, lost); err != nil {
		return false, false, err
	}
	w, err := h.cfg.Store.Watch(ctx, backend.Watch{From: h.Position(), MaxLag: followLag})
	if err == nil {
		defer w.Close()
	}
	for err == nil {
		var d backend.Delivery
		if d, err = w.Next(ctx); err == nil {
			answered, progress = true, progress || len(d.Events) > 0
			h.publish(d)
			h.observeLag(d)
		}
	}
	if errors.Is(err, backend.ErrPositionExpired) {
		*lost = lossOf(err)
	}
	return answered, progress, err
}

// observeLag observes the age of the oldest change in a delivery. It may be inexact, because the clock of the store is
// estimated.
func (h *Hub) observeLag(d backend.Delivery) {
	if h.cfg.Lag != nil && len(d.Events) > 0 {
		h.cfg.Lag.Observe(max(h.clock().Sub(d.Events[0].Time).Seconds(), 0))
	}
}

// resetLost moves the hub to a new position on the lost shards: to the newest revision that it shares with the store,
// or to the present. It empties lost.
func (h *Hub) resetLost(ctx context.Context, lost *loss) error {
	if lost.empty() {
		return nil
	}
	at, err := h.cfg.Store.Position(ctx)
	if err != nil {
		return err
	}
	h.reset(lost.restart(at), lost)
	*lost = loss{}
	return nil
}

// end ends all watches and notifies the followers that the hub has stopped.
func (h *Hub) end() {
	h.relay.Lock()
	defer h.relay.Unlock()
	for _, f := range h.followers {
		f.Begin(backend.Position{})
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.running.Store(false)
	h.position.Store(nil)
	for w := range h.alone {
		w.fail(backend.ErrClosed)
	}
	clear(h.alone)
	h.retain(func(w *Watcher) bool {
		w.fail(backend.ErrClosed)
		return false
	})
}

func (h *Hub) shard(namespace string) int { return backend.ShardOf(h.cfg.Store, namespace) }
