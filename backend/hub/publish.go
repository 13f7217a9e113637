package hub

import (
	"github.com/sluicegw/sluice/backend"
)

// entry is a change on its way to the subscribers, who share it.
type entry struct {
	event *backend.Event
	// before is the hub's position before this change.
	before      backend.Position
	shard, size int
}

// publish tells the followers of a delivery of the store and offers it to all subscribers.
func (h *Hub) publish(d backend.Delivery) {
	h.relay.Lock()
	defer h.relay.Unlock()
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
		if len(h.tables) > 0 {
			e.Position = e.Position.Written() // for all subscribers
		}
		entries[i] = entry{event: e, before: before, shard: h.shard(e.Resource.Namespace), size: e.Size()}
		before = e.Position
	}
	for by, t := range h.tables {
		t.offer(entries, values[by])
	}
	at := d.Position // d itself would be kept with it
	h.position.Store(&at)
}

// replace sets the hub's position on the shards that could not be continued, all
// of them at first. The subscribers that cover one of them cannot go on, except
// those that are still reading the log themselves.
func (h *Hub) replace(at backend.Position, lost *loss) {
	h.relay.Lock()
	defer h.relay.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	was := h.Position()
	if was.Shards() != at.Shards() {
		lost = &loss{shards: shards{all: true}}
	}
	if !lost.all {
		at = moved(was, at, &lost.shards)
	}
	for _, f := range h.followers {
		f.Begin(at)
	}
	h.position.Store(&at)
	h.each(func(w *Watcher) bool { return w.lose(was, at, lost) })
	for w := range h.alone {
		delete(h.alone, w)
		h.join(w)
	}
}

// join attaches a watch that began before the hub had a position. The caller
// holds mu.
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

// offer queues the changes that the watch covers and wakes it. It returns false
// if the watch has ended. The caller holds the hub's mu.
func (w *Watcher) offer(entries []entry) bool {
	locked := false
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
		if !w.put(e) {
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

// put queues one change. It returns false if the watch is live and has no room.
// A watch that is still reading the log drops its queue instead and has to read
// further. The caller holds w.mu.
func (w *Watcher) put(e *entry) bool {
	if !w.ahead.IsZero() && e.event.Revision.Compare(w.ahead.Shard(e.shard)) <= 0 {
		return true // seen
	}
	cfg := &w.hub.cfg
	if n := len(w.queue); n > 0 && (n == cfg.Events || w.bytes+e.size > cfg.Bytes) {
		if w.state == live {
			return false
		}
		w.clear()
		w.replayTo = later(e.before, w.replayTo)
	}
	if w.state == live && len(w.queue) == 0 {
		w.position = e.before
	}
	w.queue = append(w.queue, e)
	w.bytes += e.size
	return true
}

// lose tells the watch that the hub could not continue some shards and has moved
// from one position to another. It returns false if the watch has ended. The
// caller holds the hub's mu.
func (w *Watcher) lose(was, now backend.Position, lost *loss) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return false
	}
	if w.state != live {
		w.clear()
		if w.replayTo.Shards() == now.Shards() {
			now = later(w.replayTo, now) // what there was when the watch began lies up to there
		}
		w.replayTo = now
		return true
	}
	var mine []int
	for _, i := range lost.list(now.Shards()) {
		// A watch that was ahead of the hub may be exactly where the hub begins now, or beyond
		// that in the history with which the hub goes on without a gap.
		ahead := w.ahead.Shard(i)
		_, shared := lost.shared[i]
		goesOn := ahead == now.Shard(i) || shared && ahead.Compare(now.Shard(i)) > 0
		if w.shards.has(i) && (!goesOn || ahead.Compare(was.Shard(i)) <= 0) {
			mine = append(mine, i)
		}
	}
	if len(mine) > 0 {
		w.failLocked(&backend.ExpiredError{Shards: mine})
		return false
	}
	return true
}
