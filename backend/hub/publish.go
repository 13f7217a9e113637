package hub

import (
	"github.com/sluicegw/sluice/backend"
)

// entry is a change that is being passed to the watches, which share it.
type entry struct {
	event *backend.Event
	// before is the hub's position before this change.
	before      backend.Position
	shard, size int
}

// publish passes a delivery of the store to the followers, and then offers it to the watches.
func (h *Hub) publish(d backend.Delivery) {
	h.relay.Lock()
	defer h.relay.Unlock()
	for i := range d.Events { // encode each position once for all watches, before the events are shared
		d.Events[i].Position = d.Events[i].Position.Written()
	}
	for _, f := range h.followers {
		f.Deliver(d)
	}
	values := h.valuesOf(d.Events)
	entries := make([]entry, len(d.Events))
	h.mu.Lock()
	defer h.mu.Unlock()
	before := h.Position()
	for i := range d.Events {
		e := &d.Events[i]
		entries[i] = entry{event: e, before: before, shard: h.shard(e.Resource.Namespace), size: e.Size()}
		before = e.Position
	}
	for by, t := range h.tables {
		t.dispatch(entries, values[by])
	}
	at := d.Position // a copy: a pointer into d would retain its events
	h.position.Store(&at)
}

// reset moves the hub to a position on the lost shards. A live watch that covers one of them ends; a replaying watch
// reads up to the new position.
func (h *Hub) reset(at backend.Position, lost *loss) {
	h.relay.Lock()
	defer h.relay.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	was := h.Position()
	if was.Shards() != at.Shards() { // the hub begins, or the store has another number of shards
		lost = &loss{shards: allShards()}
	}
	if !lost.all {
		at = merge(was, at, &lost.shards)
	}
	for _, f := range h.followers {
		f.Begin(at)
	}
	h.position.Store(&at)
	h.retain(func(w *Watcher) bool { return w.reset(was, at, lost) })
	for w := range h.alone {
		delete(h.alone, w)
		h.join(w)
	}
}

// join attaches a watch that began while the hub had no position. The caller holds mu.
func (h *Hub) join(w *Watcher) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return
	}
	h.attach(w)
	w.state, w.replayTo = replaying, later(h.Position(), w.replayTo)
	if w.interrupt != nil {
		w.interrupt()
	}
}

// offer queues the changes that the watch covers, and wakes it. It returns false if the watch has ended. The caller
// holds the hub's mu.
func (w *Watcher) offer(entries []entry) bool {
	locked := false // most offers are of changes that the watch does not cover: those take no lock
	for i := range entries {
		e := &entries[i]
		if !w.shards.has(e.shard) || w.covers != nil && !w.covers(e.event.Resource.Key) {
			continue
		}
		if !locked {
			w.mu.Lock()
			defer w.mu.Unlock()
			locked = true
		}
		if w.err != nil {
			return false
		}
		if !w.enqueue(e) {
			w.hub.lagged.Add(1)
			w.failLocked(&backend.LaggedError{Position: later(w.position, w.ahead)})
			return false
		}
	}
	if locked && w.state == live {
		w.notify()
	}
	return true
}

// enqueue queues a change. If there is no room, a watch that is still reading the log empties its queue and reads
// further instead; a live watch cannot, and enqueue returns false. The caller holds w.mu.
func (w *Watcher) enqueue(e *entry) bool {
	if !w.ahead.IsZero() && e.event.Revision.Compare(w.ahead.Shard(e.shard)) <= 0 {
		return true // already read from the log
	}
	cfg := &w.hub.cfg
	if n := len(w.queue); n > 0 && (n == cfg.Events || w.bytes+e.size > cfg.Bytes) {
		if w.state == live {
			return false
		}
		w.emptyQueue()
		w.replayTo = later(e.before, w.replayTo) // the queue now begins with e
	}
	if w.state == live && len(w.queue) == 0 {
		w.position = e.before
	}
	w.queue = append(w.queue, e)
	w.bytes += e.size
	return true
}

// reset informs the watch that the hub has moved from was to now on the lost shards. It returns false if the watch has
// ended. The caller holds the hub's mu.
//
// A live watch that has read the store itself may be ahead of the hub. It continues if no change between its position
// and the new position of the hub is missing:
//
//	--- was --- now = ahead ---        the hub begins where the watch is
//	--- was --- now ------- ahead ---  the store still has all up to now, so ahead lies in its log
func (w *Watcher) reset(was, now backend.Position, lost *loss) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return false
	}
	if w.state != live {
		w.emptyQueue()
		if w.replayTo.Shards() == now.Shards() {
			now = later(w.replayTo, now) // the watch must still read what the store had when it began
		}
		w.replayTo = now
		return true
	}
	var expired []int
	for _, i := range lost.list(now.Shards()) {
		if !w.shards.has(i) {
			continue
		}
		ahead := w.ahead.Shard(i)
		_, shared := lost.shared[i]
		beyond := ahead.Compare(now.Shard(i))
		goesOn := ahead.Compare(was.Shard(i)) > 0 && (beyond == 0 || beyond > 0 && shared)
		if !goesOn {
			expired = append(expired, i)
		}
	}
	if len(expired) > 0 {
		w.failLocked(&backend.ExpiredError{Shards: expired})
		return false
	}
	return true
}
