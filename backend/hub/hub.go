// Package hub follows the changes of a store once for a whole gateway and passes
// them on to any number of subscribers. Each has a bounded queue. Publishing
// never waits for a subscriber, and nothing is polled.
//
// The hub fixes the order in which the changes of several shards are merged: the
// position of a live event is the hub's own. A subscriber that resumes from an
// older position is attached to the hub first, so that new changes gather in its
// queue, and then reads the log of the store up to the position at which it was
// attached. Until it gets there, its position is that of its own reading.
// Changes that it has read already are left out of the queue.
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
	cfg     Config
	sharder backend.Sharder // nil: one shard
	// replays holds a token for each watch that is reading the store's log.
	replays chan struct{}

	// relay is held while followers and subscribers are told of a delivery, before mu.
	relay sync.Mutex
	// followers are guarded by relay.
	followers []Follower

	// running says that Run was called and has not returned.
	running atomic.Bool

	mu sync.Mutex // guards all below
	// position is that up to which the store was followed; nil while it is not. It is set under mu.
	position atomic.Pointer[backend.Position]
	// lagged counts the watches that were closed because they were too slow.
	lagged atomic.Uint64
	// tables have the watches that changes are offered to, by what they are found by: nil for
	// those that are asked of every change.
	tables map[Attribute]*table
	// alone are the watches that began while the hub had no position. They join it
	// when it has one.
	alone map[*Watcher]struct{}
	// reserved counts the subscribers.
	reserved int
}

// Errors of the hub's own.
var (
	// ErrFull: the limit of subscribers is reached.
	ErrFull = errors.New("too many subscribers")
	// ErrIdle: nothing came before the deadline of [Watcher.NextBefore].
	ErrIdle = errors.New("no change came in time")
	// ErrRunning: Run was called while it runs.
	ErrRunning = errors.New("hub runs already")
)

// New makes a hub and starts nothing. Until Run follows the store, each watch
// reads the store on its own; then it joins the hub.
func New(cfg Config) (*Hub, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("hub: %w", err)
	}
	cfg.setDefaults()
	sharder, _ := cfg.Store.(backend.Sharder)
	return &Hub{cfg: cfg, sharder: sharder, replays: make(chan struct{}, maxReplays), alone: map[*Watcher]struct{}{}, tables: map[Attribute]*table{}}, nil
}

// Position is the position up to which the hub has followed the store. It is
// zero while the hub does not run.
func (h *Hub) Position() backend.Position {
	if p := h.position.Load(); p != nil {
		return *p
	}
	return backend.Position{}
}

// Reserve counts one subscriber, or fails with [ErrFull]. Its watches are
// [Watch.Reserved]. leave ends the reservation; calling it again does nothing.
func (h *Hub) Reserve() (leave func(), err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.reserved >= h.cfg.MaxSubscribers {
		return nil, ErrFull
	}
	h.reserved++
	return sync.OnceFunc(func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.reserved--
	}), nil
}

// Subscribers is the number of reserved subscribers.
func (h *Hub) Subscribers() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.reserved
}

// NoteLagged counts a subscriber that was too slow for what it shares with others.
func (h *Hub) NoteLagged() { h.lagged.Add(1) }

// Lagged is the number of watches that were closed because they were too slow, so far.
func (h *Hub) Lagged() uint64 { return h.lagged.Load() }

// Pauses before the store is watched again. All streams, and lists of what is in memory, wait for
// the hub after an outage, and asking costs little.
const (
	minPause = 50 * time.Millisecond
	maxPause = 500 * time.Millisecond
)

// followLag is how far the hub's own watch may fall behind. It is large because
// the hub would only begin another watch at the same position.
const followLag = 1 << 20

// Run follows the store until ctx ends or the store is closed. Neither is an
// error, and both end all watches with [backend.ErrClosed]. While the store does
// not answer, the subscribers wait. If a shard cannot be continued, the
// subscribers that cover it get [backend.ErrPositionExpired] and the others go on.
func (h *Hub) Run(ctx context.Context) error {
	if !h.running.CompareAndSwap(false, true) {
		return ErrRunning
	}
	defer h.end()
	lost, pause := loss{shards: shards{all: true}}, minPause
	for {
		answered, progress, err := h.follow(ctx, &lost)
		if ctx.Err() != nil || errors.Is(err, backend.ErrClosed) {
			return nil
		}
		if answered {
			pause = minPause
		}
		known := errors.Is(err, backend.ErrPositionExpired) || errors.Is(err, backend.ErrLagged)
		h.report(err, known || pause == minPause)
		if known && progress {
			continue
		}
		if !wait.For(ctx, pause/2+time.Duration(h.cfg.Rand.Int64N(int64(pause/2)))) {
			return nil
		}
		pause = min(2*pause, maxPause)
	}
}

func (h *Hub) report(err error, first bool) {
	if first {
		h.cfg.Logger.Warn("following the store's changes was interrupted", zap.Error(err))
	} else {
		h.cfg.Logger.Debug("following the store's changes is still interrupted", zap.Error(err))
	}
}

// follow publishes what one watch of the store delivers, until the watch ends.
// On lost shards it begins at the last place that the log shares with the hub, or at the
// store's present position. answered says that the store delivered anything, progress that
// it delivered events.
func (h *Hub) follow(ctx context.Context, lost *loss) (answered, progress bool, err error) {
	if !lost.empty() {
		at, err := h.cfg.Store.Position(ctx)
		if err != nil {
			return false, false, err
		}
		h.replace(lost.begin(at), lost)
		*lost = loss{}
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
		}
	}
	if errors.Is(err, backend.ErrPositionExpired) {
		*lost = lossOf(err)
	}
	return answered, progress, err
}

// end closes the watches of all subscribers.
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
	h.each(func(w *Watcher) bool {
		w.fail(backend.ErrClosed)
		return false
	})
}

// shard is the shard of a namespace.
func (h *Hub) shard(namespace string) int {
	if h.sharder == nil {
		return 0
	}
	return h.sharder.Shard(namespace)
}
