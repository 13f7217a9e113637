package hub

import (
	"context"
	"sync"
	"time"

	"github.com/sluicegw/sluice/backend"
)

// Watch describes a watch: where it begins and what it covers.
type Watch struct {
	// From is the position to resume after; zero means now.
	From backend.Position
	// Covers reports whether the watch delivers changes of a key; nil means all. The
	// hub calls it for every change, so it must be quick and must not use the hub.
	Covers func(backend.Key) bool
	// Lookup limits the changes for which Covers is asked; nil means all.
	Lookup *Lookup
	// Namespaces are the namespaces of the covered keys, "" for GLOBAL kinds; nil
	// means all. Only their shards can make the position expire.
	Namespaces []string
}

// Watcher is a watch, as a [backend.Watcher]. It delivers every covered change
// after its position exactly once, in order per shard. It must be closed.
type Watcher struct {
	hub    *Hub
	shards shards // that the watch covers
	// covers is changed by Cover, under hub.mu.
	covers func(backend.Key) bool
	lookup *Lookup
	// slot is the watch's index in table.watches, -1 if it is not attached; guarded by hub.mu.
	slot int
	wake chan struct{} // capacity 1

	// These belong to the goroutine that calls Next; source is set under mu.

	// caughtUp reports whether the delivery with CaughtUp was made. There is only one.
	caughtUp bool
	// source is the watch of the store; nil if the watch is live or has to open it.
	source backend.Watcher
	// openedTo is the value of replayTo when source was opened.
	openedTo backend.Position

	mu sync.Mutex // guards all below
	// state is changed by the goroutine that calls Next, except by join: alone to replaying.
	state watchState
	// replayTo is the hub's position from which on changes are queued: a replaying watch reads the
	// log up to there. Zero once the watch is live.
	replayTo backend.Position
	// queue is bounded by Config.Events and Config.Bytes; bytes is the sum of its sizes.
	queue []*entry
	bytes int
	// position is how far the watch has delivered: to the end of the last read of the log, or, once
	// it is live, to the first queued change.
	position backend.Position
	// ahead is the position up to which the watch has read the log beyond the hub; zero
	// once the hub has passed it.
	ahead backend.Position
	// interrupt cancels a wait for source; nil if there is none.
	interrupt context.CancelFunc
	err       error // why the watch has ended; nil while it has not
	closed    bool  // by Close: a source that is opened later is closed at once
	// delivered counts the delivered events.
	delivered uint64
	// onChange, if set, is called instead of waking Next.
	onChange func()
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
	if source != nil {
		source.Close()
	}
}

// Position returns the position up to which all covered changes were delivered.
// It also advances over changes that the watch does not cover.
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

// NextBefore is like Next, but returns [ErrIdle] if there is no change before the
// deadline; the watch continues. The zero time means no deadline.
func (w *Watcher) NextBefore(ctx context.Context, deadline time.Time) (backend.Delivery, error) {
	if deadline.IsZero() {
		return w.Next(ctx)
	}
	waiting, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	d, err := w.Next(waiting)
	if err != nil && ctx.Err() == nil && endedBy(waiting, err) {
		err = ErrIdle
	}
	return d, err
}

// Next implements [backend.Watcher].
func (w *Watcher) Next(ctx context.Context) (backend.Delivery, error) {
	for {
		d, ok, err := w.TryNext()
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

// Notify makes the watch call f, instead of waking Next, when changes are queued and when it
// ends. f must be quick and must not use the hub. Notify(nil) wakes Next again.
func (w *Watcher) Notify(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.onChange = f
}

// Live reports whether the watch has read the log up to its queue. From then on it does not read
// the store.
func (w *Watcher) Live() bool { return w.is(live) }

// CaughtUpWith reports whether the watch has delivered exactly the events that other has delivered
// or queued. That is so if both are live and at the hub's position, and the queue of w is empty.
// seen is how many events other has delivered and queued since it began. Both watches must cover
// the same namespaces, and no goroutine may be in Next of either.
func (w *Watcher) CaughtUpWith(other *Watcher) (seen uint64, ok bool) {
	w.hub.mu.Lock() // nothing is published meanwhile
	defer w.hub.mu.Unlock()
	w.mu.Lock()
	ok = w.atHub() && len(w.queue) == 0
	w.mu.Unlock()
	if !ok {
		return 0, false
	}
	other.mu.Lock()
	defer other.mu.Unlock()
	return other.delivered + uint64(len(other.queue)), other.atHub()
}

// Empty reports whether the watch is live, has not ended, and has an empty queue.
func (w *Watcher) Empty() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err == nil && w.state == live && len(w.queue) == 0
}

// Cover replaces Watch.Covers between two deliveries of the store, and then calls f. While f runs,
// the followers have exactly the changes that the watch has delivered or queued. f must be quick
// and must not use the hub. queued are the events that were queued according to the old function.
// If ok is false, nothing has changed, because the watch is reading the log, is ahead of the hub,
// or has ended. Only the goroutine that calls Next may call Cover.
func (w *Watcher) Cover(covers func(backend.Key) bool, f func()) (queued backend.Delivery, ok bool, err error) {
	h := w.hub
	h.relay.Lock()
	defer h.relay.Unlock()
	h.mu.Lock()
	w.mu.Lock()
	ok, err = w.atHub(), w.err
	w.mu.Unlock()
	if ok {
		w.covers = covers
		queued, _, err = w.TryNext()
	}
	h.mu.Unlock()
	if ok {
		f()
	}
	return queued, ok, err
}

// atHub reports whether the queue ends at the hub's position: the watch is live and has not read
// the log beyond it. The caller holds the hub's mu and w.mu.
func (w *Watcher) atHub() bool {
	return w.err == nil && w.state == live && w.slot >= 0 && w.hub.Position().Covers(w.ahead)
}

// TryNext returns the queued events of a live watch, without waiting. ok is false if there are
// none. It does not read the store's log: until the watch is live, Next must be called. The first
// delivery of a live watch has CaughtUp, even if it has no events.
func (w *Watcher) TryNext() (d backend.Delivery, ok bool, err error) {
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
		w.emptyQueue()
	}
	d.CaughtUp, w.caughtUp = !w.caughtUp, true
	d.Position = later(w.position, w.ahead)
	return d, true, nil
}

// translate returns the position of the watch when the hub is at p. They differ on shards where the
// watch has read the log beyond p. The caller holds mu.
func (w *Watcher) translate(p backend.Position) backend.Position {
	if w.ahead.IsZero() {
		return p
	}
	if p.Covers(w.ahead) {
		w.ahead = backend.Position{}
		return p
	}
	return later(p, w.ahead)
}

// reachesQueue reports whether a replaying watch can go on with its queue after at. The caller
// holds mu.
func (w *Watcher) reachesQueue(at backend.Position) bool {
	return w.state == replaying && w.err == nil && coversOn(at, w.replayTo, &w.shards)
}

// goLive makes the watch live if its queue continues at, and drops from the queue what was read
// from the log. The caller holds mu.
func (w *Watcher) goLive(at backend.Position) bool {
	if !w.reachesQueue(at) {
		return false
	}
	w.state = live
	w.position = at
	w.ahead = at
	waiting := w.queue
	w.queue, w.bytes = nil, 0
	for _, e := range waiting {
		w.enqueue(e) // it fits: it did before
	}
	w.position = at
	w.replayTo = backend.Position{}
	w.openedTo = backend.Position{}
	return true
}

// keptCapacity is the maximum capacity that an empty queue keeps.
const keptCapacity = 16

// emptyQueue empties the queue. The caller holds mu.
func (w *Watcher) emptyQueue() {
	if cap(w.queue) > keptCapacity {
		w.queue = nil
	} else {
		clear(w.queue)
		w.queue = w.queue[:0]
	}
	w.bytes = 0
}

// fail ends the watch with the first error it is given. The caller detaches it.
func (w *Watcher) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failLocked(err)
}

// failLocked is fail for a caller that holds mu.
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

// notify wakes a waiting Next, or calls onChange. The caller holds mu.
func (w *Watcher) notify() {
	if w.onChange != nil {
		w.onChange()
		return
	}
	select {
	case w.wake <- struct{}{}:
	default:
	}
}
