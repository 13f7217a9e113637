// Package hub follows the changes of a store once for a whole gateway and hands
// them to any number of subscribers, each with a bounded queue. Publishing
// waits for nobody and nothing is polled.
//
// The hub fixes the order in which the changes of several shards are merged:
// the position of a live event is the hub's vector. A subscriber that resumes
// is attached to the hub first, so that what happens meanwhile waits in its
// queue, and reads the log of the store from its own place until it meets the
// place where it was attached. Its position is that of its own reading until
// then, and what it has already read is left out of the queue.
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
)

// Hub follows one store. All methods are safe for concurrent use.
type Hub struct {
	cfg     Config
	sharder backend.Sharder // nil: one shard
	// replays has a place for each watch that may read the store's log at once.
	replays chan struct{}

	mu sync.Mutex // guards all below
	// running says that Run was called and has not returned.
	running bool
	// place is how far the store was followed; zero while it is not.
	place backend.Position
	// published is a copy of place that is read without mu.
	published atomic.Pointer[backend.Position]
	// lagged counts the watches that were closed because they were too slow.
	lagged atomic.Uint64
	// attached are the watches that changes are offered to.
	attached []*Watcher
	// early are the watches that began while the hub followed nothing. They join
	// when it has a place.
	early map[*Watcher]struct{}
	// open counts the places that were taken and not given back.
	open int
}

// Errors of the hub's own.
var (
	// ErrFull: there are as many subscribers as there may be.
	ErrFull = errors.New("too many subscribers")
	// ErrRunning: Run was called while it runs.
	ErrRunning = errors.New("hub runs already")
)

// New makes a hub. It starts nothing: until Run follows the store, each watch
// reads the store on its own, and joins the hub then.
func New(cfg Config) (*Hub, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("hub: %w", err)
	}
	cfg.setDefaults()
	sharder, _ := cfg.Store.(backend.Sharder)
	return &Hub{cfg: cfg, sharder: sharder, replays: make(chan struct{}, maxReplays), early: map[*Watcher]struct{}{}}, nil
}

// Position is the hub's vector: how far it has followed the store. It is zero
// while it does not run.
func (h *Hub) Position() backend.Position {
	if p := h.published.Load(); p != nil {
		return *p
	}
	return backend.Position{}
}

// setPlace moves the place. The caller holds mu.
func (h *Hub) setPlace(p backend.Position) {
	h.place = p
	h.published.Store(&p)
}

// Admit takes the place of one subscriber, or fails with [ErrFull]. The watches
// of who holds a place are [Watch.Admitted]. leave gives it back, once.
func (h *Hub) Admit() (leave func(), err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.open >= h.cfg.MaxSubscribers {
		return nil, ErrFull
	}
	h.open++
	return sync.OnceFunc(func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.open--
	}), nil
}

// Subscribers is the number of places that are taken.
func (h *Hub) Subscribers() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.open
}

// Lagged is the number of watches that were closed because they were too slow, so far.
func (h *Hub) Lagged() uint64 { return h.lagged.Load() }

// Pauses before the store is watched again.
const (
	minPause = 50 * time.Millisecond
	maxPause = 5 * time.Second
)

// followLag is so much that the hub is hardly ever told that it lags: it goes on all the same.
const followLag = 1 << 20

// Run follows the store until ctx ends or the store is closed; both are no
// error, and end all watches with [backend.ErrClosed]. While the store does not
// answer, the subscribers wait. Where the store cannot continue, those that
// cover a lost shard get [backend.ErrPositionExpired] and the others go on.
func (h *Hub) Run(ctx context.Context) error {
	if !h.begin() {
		return ErrRunning
	}
	defer h.end()
	lost, pause := shards{all: true}, minPause
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
		if !backend.Pause(ctx, pause/2+time.Duration(h.cfg.Rand.Int64N(int64(pause/2)))) {
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

// follow publishes what one watch of the store delivers until it ends. Shards
// that are lost begin at the store's present place. answered says that the
// store delivered anything, progress that there were events.
func (h *Hub) follow(ctx context.Context, lost *shards) (answered, progress bool, err error) {
	if !lost.empty() {
		at, err := h.cfg.Store.Position(ctx)
		if err != nil {
			return false, false, err
		}
		h.replace(at, lost)
		*lost = shards{}
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
		*lost = expired(err)
	}
	return answered, progress, err
}

func (h *Hub) begin() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.running {
		return false
	}
	h.running = true
	return true
}

// end lets go of all subscribers.
func (h *Hub) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.running = false
	h.setPlace(backend.Position{})
	for _, w := range h.attached {
		w.fail(backend.ErrClosed)
		w.slot = -1
	}
	h.attached = nil
}

// shard is the shard of a namespace.
func (h *Hub) shard(namespace string) int {
	if h.sharder == nil {
		return 0
	}
	return h.sharder.Shard(namespace)
}
