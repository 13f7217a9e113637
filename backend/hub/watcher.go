package hub

import (
	"context"
	"sync"
	"time"

	"github.com/sluicegw/sluice/backend"
)

// Watch describes a watch: its position and the changes that it covers.
type Watch struct {
	// From is the position after which the watch begins; zero means now.
	From backend.Position
	// Covers reports whether the watch delivers changes of a key; nil means all keys. It is called for every change, so
	// it must be quick, and it must not call the hub.
	Covers func(backend.Key) bool
	// Lookup restricts the changes for which Covers is called; nil means no restriction.
	Lookup *Lookup
	// Namespaces are the namespaces of the covered keys, where "" stands for GLOBAL kinds; nil means all. Only their
	// shards can make the position expire.
	Namespaces []string
}

// Watcher is an open [Watch]. It implements [backend.Watcher]. It delivers every covered change after its position
// exactly once; changes of the same shard are in order. It must be closed.
type Watcher struct {
	hub    *Hub
	shards shards // that the watch covers
	// covers is changed by Cover, with hub.mu locked.
	covers func(backend.Key) bool
	lookup *Lookup
	// slot is the index of the watch in lookupTable.watches; -1 if it is not attached. It is guarded by hub.mu.
	slot int
	wake chan struct{} // capacity 1

	// The fields below are used only by the goroutine that calls Next; source is set with mu locked.

	// caughtUp reports whether the delivery with CaughtUp was made. There is only one such delivery.
	caughtUp bool
	// source is the watch of the store; nil if it is not open.
	source backend.Watcher
	// openedTo is the value of replayTo when source was opened.
	openedTo backend.Position

	mu sync.Mutex // guards all below
	// state is changed only by the goroutine that calls Next, except that join changes alone to replaying.
	state watchState
	// replayTo is the position of the hub from which changes are queued. A replaying watch reads the log up to there.
	// It is zero once the watch is live.
	replayTo backend.Position
	// queue has at most Config.Events events and Config.Bytes bytes. bytes is its size.
	queue []*entry
	bytes int
	// position is the position up to which the watch has delivered. For a live watch it is the position before the
	// first queued change.
	position backend.Position
	// ahead is the position up to which the watch has read the log further than the hub; zero once the hub has passed
	// it.
	ahead backend.Position
	// interrupt cancels waiting for source; nil if the watch does not wait.
	interrupt context.CancelFunc
	err       error // why the watch has ended; nil while it has not
	closed    bool  // by Close: a source that is opened later is closed at once
	// delivered is the number of delivered events.
	delivered uint64
	// onChange is called instead of waking Next, unless it is nil.
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

// Position returns the position up to which all covered changes were delivered. It also moves past changes that the
// watch does not cover.
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

// NextBefore is like Next, but returns [ErrIdle] if there is no change before the deadline. The watch remains usable.
// The zero time means no deadline.
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

// Notify makes the watch call f when changes are queued and when the watch ends, instead of waking Next. f must be
// quick and must not call the hub. With nil, Next is woken again.
func (w *Watcher) Notify(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.onChange = f
}

// Live reports whether the watch has read the log up to its queue. From then on it does not read the store.
func (w *Watcher) Live() bool { return w.is(live) }

// CaughtUpWith reports whether the watch has delivered exactly the events that other has delivered or queued. That is
// so if both are live and at the position of the hub, and the queue of w is empty. seen is the number of events that
// other has delivered or queued since it began. Both watches must cover the same namespaces, and no goroutine may be in
// Next of either.
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

// Cover replaces Watch.Covers between two deliveries of the store, and then calls f. While f runs, the followers have
// exactly the changes that the watch has delivered or queued. f must be quick and must not call the hub. queued has the
// events that were in the queue, which the previous function covers. If ok is false, f was not called and nothing has
// changed: the watch is reading the log, is ahead of the hub, or has ended. Cover may be called only by the goroutine
// that calls Next.
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

// atHub reports whether the queue ends at the position of the hub: the watch is live and has not read the log further.
// The caller holds the hub's mu and w.mu.
func (w *Watcher) atHub() bool {
	return w.err == nil && w.state == live && w.slot >= 0 && w.hub.Position().Covers(w.ahead)
}

// TryNext returns the queued events of a live watch without waiting. ok is false if there are none. It does not read
// the store's log, so Next must be called until the watch is live. The first delivery of a live watch has CaughtUp,
// even if it has no events.
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

// translate returns the position of the watch when the hub is at p. It differs from p on shards where the watch has
// read the log further. The caller holds mu.
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

// reachesQueue reports whether a replaying watch can continue with its queue after a position. The caller holds mu.
func (w *Watcher) reachesQueue(at backend.Position) bool {
	return w.state == replaying && w.err == nil && coversOn(at, w.replayTo, &w.shards)
}

// goLive makes the watch live if its queue continues at a position. It drops queued changes that were read from the
// log. It reports whether the watch became live. The caller holds mu.
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

// keptCapacity is the maximum capacity of an empty queue. A larger queue is dropped.
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

// fail ends the watch with an error, unless it has ended before. The caller detaches it.
func (w *Watcher) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failLocked(err)
}

// failLocked is like fail, for a caller that holds mu.
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
