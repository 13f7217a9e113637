package hub

import "github.com/sluicegw/sluice/backend"

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

// Live says whether the watch has read what there was before, so that it does not wait
// for the store.
func (w *Watcher) Live() bool { return w.is(live) }

// Level says whether the watch has delivered exactly what another one has, counted with
// what waits in the other: both have caught up, and nothing waits in this one. seen is how
// many of the other's events these are. Both cover the same.
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

// Empty says whether the watch is live and has delivered everything, and has not ended.
func (w *Watcher) Empty() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err == nil && w.state == live && len(w.queue) == 0
}

// level says whether the watch is where the hub is but for what waits in its queue: it has
// not read ahead of the hub. The caller holds the hub's mu and w.mu.
func (w *Watcher) level() bool {
	return w.err == nil && w.state == live && w.place >= 0 && (w.ahead.IsZero() || reached(w.hub.Position(), w.ahead, &shards{all: true}))
}
