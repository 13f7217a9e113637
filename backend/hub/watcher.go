package hub

import (
	"context"
	"sync"
	"time"

	"github.com/sluicegw/sluice/backend"
)

// Watch says where a watch begins and what it covers.
type Watch struct {
	// From is the position last seen; zero means now.
	From backend.Position
	// Covers says whether the watch delivers changes of a key; nil means all. The
	// hub calls it for every change, so it must be quick and must not use the hub.
	Covers func(backend.Key) bool
	// Lookup finds the watch by values of changes; nil asks Covers of every change. What
	// it finds is still asked.
	Lookup *Lookup
	// Namespaces are those in which covered keys lie, "" for GLOBAL kinds; nil
	// means all. Only their shards can make the position expire.
	Namespaces []string
	// Reserved says that the watch belongs to a subscriber that [Hub.Reserve] has
	// counted, or to the gateway's own work: it is neither counted nor refused.
	Reserved bool
}

// Watcher is a subscriber's [backend.Watcher]. It delivers every covered change
// after its position exactly once, in order per shard. It must be closed.
type Watcher struct {
	shards shards
	covers func(backend.Key) bool
	hub    *Hub
	leave  func() // ends the watch's own reservation; nil if it has none
	lookup *Lookup
	// slot is that among all watches of its table, -1 if none offers it changes; guarded by hub.mu.
	slot int
	wake chan struct{} // of one element

	// These belong to the goroutine that calls Next; source is set under mu.
	caughtUp bool
	// source is the watch of the store, nil if the watch is live or that has to be opened again.
	source backend.Watcher
	// openedTo is what replayTo was when source was opened.
	openedTo backend.Position

	mu sync.Mutex // guards all below
	// state is changed by the goroutine that calls Next, but from alone to replaying.
	state    watchState
	replayTo backend.Position
	// queue is bounded by the hub's configuration; bytes is the sum of its sizes.
	queue []*entry
	bytes int
	// position is where the queue begins; everything before it was delivered.
	position backend.Position
	// ahead is the position up to which the watch read ahead of the hub; zero once
	// the hub has passed it.
	ahead backend.Position
	// interrupt ends a Next that waits for source; nil if none does.
	interrupt context.CancelFunc
	err       error // what ended the watch
	closed    bool
	// delivered counts the events that were delivered.
	delivered uint64
	// notified is called instead of waking Next; nil if a goroutine waits in that.
	notified func()
}

var _ backend.Watcher = (*Watcher)(nil)

// Close ends the watch. A waiting Next returns ErrClosed.
func (w *Watcher) Close() {
	h := w.hub
	h.mu.Lock()
	h.detach(w)
	w.mu.Lock()
	if !w.closed {
		w.closed = true
		w.failLocked(backend.ErrClosed)
	}
	source := w.source
	w.mu.Unlock()
	h.mu.Unlock()
	if w.leave != nil {
		w.leave()
	}
	if source != nil {
		source.Close()
	}
}

// Position is where the watch is: all covered changes up to it were delivered.
// It also moves on over changes that the watch does not cover.
func (w *Watcher) Position() backend.Position {
	w.hub.mu.Lock()
	defer w.hub.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.state == live && len(w.queue) == 0 && w.slot >= 0 {
		return later(w.hub.Position(), w.ahead)
	}
	return later(w.position, w.ahead)
}

// NextBefore is Next, but fails with [ErrIdle] if nothing came before the
// deadline; the watch goes on. The zero time is no deadline.
func (w *Watcher) NextBefore(ctx context.Context, deadline time.Time) (backend.Delivery, error) {
	if deadline.IsZero() {
		return w.Next(ctx)
	}
	if d, ok, err := w.take(); ok || err != nil {
		return d, err
	}
	waiting, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	d, err := w.Next(waiting)
	if err != nil && ctx.Err() == nil && ends(waiting, err) {
		err = ErrIdle
	}
	return d, err
}

// Next is [backend.Watcher.Next].
func (w *Watcher) Next(ctx context.Context) (backend.Delivery, error) {
	for {
		d, ok, err := w.take()
		if ok || err != nil {
			return d, err
		}
		if err := ctx.Err(); err != nil {
			return backend.Delivery{}, err
		}
		if !w.Live() {
			if d, ok, err = w.read(ctx); ok || err != nil {
				return d, err
			}
			continue
		}
		select {
		case <-w.wake:
		case <-ctx.Done():
			return backend.Delivery{}, ctx.Err()
		}
	}
}

// Notify calls f instead of waking a waiting Next: after each change that is queued, and
// when the watch ends. f must be quick and must not use the hub. Nil ends that.
func (w *Watcher) Notify(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notified = f
}

// TryNext is Next of a watch that has caught up, without waiting; ok is false if there is
// nothing to deliver.
func (w *Watcher) TryNext() (d backend.Delivery, ok bool, err error) { return w.take() }

// Live reports whether the watch has read the log up to its queue. It does not wait for the
// store from then on.
func (w *Watcher) Live() bool { return w.is(live) }

// Level reports whether the watch has delivered exactly what another one has delivered or has
// in its queue: both have caught up, and the queue of this one is empty. seen is the number of
// the other's events up to there. Both watches must cover the same namespaces.
func (w *Watcher) Level(with *Watcher) (seen uint64, ok bool) {
	w.hub.mu.Lock() // so nothing is published meanwhile
	defer w.hub.mu.Unlock()
	w.mu.Lock()
	ok = w.level() && len(w.queue) == 0
	w.mu.Unlock()
	if !ok {
		return 0, false
	}
	with.mu.Lock()
	defer with.mu.Unlock()
	return with.delivered + uint64(len(with.queue)), with.level()
}

// Empty reports whether the watch is live, has not ended, and has delivered all that it has.
func (w *Watcher) Empty() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err == nil && w.state == live && len(w.queue) == 0
}

// level reports whether the watch and its queue together end where the hub is: a watch of the
// store may have read further. The caller holds the hub's mu and w.mu.
func (w *Watcher) level() bool {
	return w.err == nil && w.state == live && w.slot >= 0 && (w.ahead.IsZero() || reached(w.hub.Position(), w.ahead, &shards{all: true}))
}

// take returns what waits in the queue of a live watch. The first time it also
// returns an empty delivery, which is the mark.
func (w *Watcher) take() (d backend.Delivery, ok bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return d, false, w.err
	}
	n := len(w.queue)
	if w.state != live || n == 0 && w.caughtUp {
		return d, false, nil
	}
	if n > 0 {
		d.Events = make([]backend.Event, n)
		for i, e := range w.queue {
			d.Events[i] = *e.event
			d.Events[i].Position = w.translate(e.event.Position)
		}
		w.position = d.Events[n-1].Position
		w.delivered += uint64(n)
		w.clear()
	}
	d.CaughtUp, w.caughtUp = !w.caughtUp, true
	d.Position = later(w.position, w.ahead)
	return d, true, nil
}

// translate returns the subscriber's position for one of the hub: the subscriber
// may be ahead on some shards. The caller holds mu.
func (w *Watcher) translate(p backend.Position) backend.Position {
	if w.ahead.IsZero() {
		return p
	}
	if reached(p, w.ahead, &shards{all: true}) {
		w.ahead = backend.Position{}
		return p
	}
	return later(p, w.ahead)
}

// reachesQueue reports whether the queue continues a position. The caller holds mu.
func (w *Watcher) reachesQueue(at backend.Position) bool {
	return w.state == replaying && w.err == nil && reached(at, w.replayTo, &w.shards)
}

// goLive switches to the queue if that continues a position. The caller holds mu.
func (w *Watcher) goLive(at backend.Position) bool {
	if !w.reachesQueue(at) {
		return false
	}
	w.state, w.position, w.ahead = live, at, at
	waiting := w.queue
	w.queue, w.bytes = nil, 0
	for _, e := range waiting {
		w.put(e)
	}
	w.position, w.replayTo, w.openedTo = at, backend.Position{}, backend.Position{}
	return true
}

// keep is the capacity that an empty queue may keep.
const keep = 16

// clear empties the queue. The caller holds mu.
func (w *Watcher) clear() {
	if cap(w.queue) > keep {
		w.queue = nil
	} else {
		clear(w.queue)
		w.queue = w.queue[:0]
	}
	w.bytes = 0
}

func (w *Watcher) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failLocked(err)
}

// failLocked ends the watch with the first error it is given. The caller holds mu.
func (w *Watcher) failLocked(err error) {
	if w.err == nil {
		w.err = err
	}
	w.queue, w.bytes = nil, 0
	if w.interrupt != nil {
		w.interrupt()
	}
	w.notify()
}

// notify wakes a waiting Next, or tells who wants to be told. The caller holds mu.
func (w *Watcher) notify() {
	if w.notified != nil {
		w.notified()
		return
	}
	select {
	case w.wake <- struct{}{}:
	default:
	}
}
