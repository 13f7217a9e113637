package hub

import (
	"context"
	"errors"
	"slices"

	"github.com/sluicegw/sluice/backend"
)

// watchState is where a watch takes its changes from. It ends in any of them, with err.
//
//	the hub has no position             the hub follows the store
//
//	      Watch                                  Watch
//	        |                                      |
//	        v                                      v
//	      alone ------- the hub begins ------> replaying <--+
//	                                               |    |   |  the queue overflows: it begins again at a
//	                          replayTo is reached  |    +---+  later position, and so does replayTo
//	                                               v
//	                                             live ------>  LAGGED if the queue overflows
//
// etcd's watchable store divides its watchers in the same way: unsynced ones replay, synced ones are
// live. It has a third group, of blocked ones; here a live watch whose queue overflows ends.
//
// The queue of a watch begins where the hub was when the watch was attached, and the log is read up to
// there, so each change is delivered once: by the one or by the other. The hub makes a watch replay
// that was alone, and Next makes it live. If the hub loses its place, a live watch ends, and one that
// replays reads up to where the hub begins again.
type watchState int

const (
	// alone: all changes come from a watch of the store.
	alone watchState = iota
	// replaying: a watch of the store reads the log up to replayTo, where the queue begins.
	replaying
	// live: the queue continues what was delivered.
	live
)

// Watch begins a watch. A position that the log cannot continue from is
// [backend.ErrPositionExpired], here or from Next. That holds for the shards
// that the watch covers; on the others it begins at the present position.
func (h *Hub) Watch(ctx context.Context, req Watch) (*Watcher, error) {
	w, err := h.newWatcher(req)
	if err != nil {
		return nil, err
	}
	if err := w.begin(ctx, req.From); err != nil {
		w.Close()
		return nil, err
	}
	return w, nil
}

// newWatcher makes a watch. Its queue begins now if the hub follows the store.
func (h *Hub) newWatcher(req Watch) (*Watcher, error) {
	w := &Watcher{hub: h, covers: req.Covers, lookup: req.Lookup, slot: -1, wake: make(chan struct{}, 1), shards: shards{all: req.Namespaces == nil}}
	for _, namespace := range req.Namespaces {
		w.shards.add(h.shard(namespace))
	}
	if !req.Reserved {
		var err error
		if w.leave, err = h.Reserve(); err != nil {
			return nil, err
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if w.replayTo = h.Position(); w.replayTo.IsZero() {
		h.alone[w] = struct{}{}
		return w, nil
	}
	w.state = replaying
	h.attach(w)
	return w, nil
}

// begin finds out what has to be read before the queue. It asks the store for
// its position. So a watch from now never delivers a write that its caller made
// earlier, and a watch that has caught up has seen everything there was.
func (w *Watcher) begin(ctx context.Context, from backend.Position) error {
	at, err := w.hub.cfg.Store.Position(ctx)
	if err != nil {
		return err
	}
	if from.IsZero() {
		from = at
	}
	if from.Shards() != at.Shards() {
		return backend.ErrPositionExpired
	}
	if !w.shards.all {
		from = moved(at, from, &w.shards)
	}
	w.mu.Lock()
	w.position = from
	nothing := reached(from, at, &w.shards) && reached(at, from, &w.shards)
	live := nothing && w.goLive(from)
	if !live {
		w.replayTo = later(w.replayTo, at)
	}
	w.mu.Unlock()
	if live {
		return nil
	}
	return w.open(ctx)
}

// maxReopens bounds how often a watch of the store is opened again at once
// because of expired shards that the watch does not cover.
const maxReopens = 3

// open opens a watch of the store at the watch's own position.
func (w *Watcher) open(ctx context.Context) error {
	for try := 0; ; try++ {
		w.mu.Lock()
		from := w.position
		w.openedTo = w.replayTo
		w.mu.Unlock()
		source, err := w.hub.cfg.Store.Watch(ctx, backend.Watch{From: from})
		if err == nil {
			w.mu.Lock()
			w.source = source
			closed := w.closed
			w.mu.Unlock()
			if closed {
				source.Close()
			}
			return nil
		}
		if try == maxReopens {
			return err
		}
		if err := w.skipExpired(ctx, err); err != nil {
			return err
		}
	}
}

// skipExpired moves the position to the present on the shards that have expired.
// It returns the error if the watch covers one of them or if it is another error.
func (w *Watcher) skipExpired(ctx context.Context, err error) error {
	if !errors.Is(err, backend.ErrPositionExpired) {
		return err
	}
	lost := lossOf(err)
	w.mu.Lock()
	from := w.position
	w.mu.Unlock()
	if slices.ContainsFunc(lost.list(from.Shards()), w.shards.has) {
		return err
	}
	at, failed := w.hub.cfg.Store.Position(ctx)
	if failed != nil {
		return failed
	}
	if at.Shards() != from.Shards() {
		return err
	}
	w.mu.Lock()
	w.position = moved(from, at, &lost.shards)
	w.mu.Unlock()
	return nil
}

// read takes the next delivery of the store's watch, for a watch that is not live. It returns
// false if there is nothing to deliver yet. An error ends the watch, unless ctx has ended.
func (w *Watcher) read(ctx context.Context) (d backend.Delivery, ok bool, err error) {
	w.mu.Lock()
	isLive := w.goLive(w.position) // the hub may have begun there
	w.mu.Unlock()
	switch {
	case isLive:
		if w.source != nil {
			w.closeSource()
		}
		return d, false, nil
	case w.source == nil:
		if err = w.open(ctx); err != nil && !ends(ctx, err) {
			err = w.finish(err)
		}
		return d, false, err
	}
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := w.interruptible(cancel)
	if ended == nil {
		d, err = w.nextOfSource(waiting)
		ended = w.interruptible(nil)
	}
	switch {
	case ended != nil:
		return backend.Delivery{}, false, w.finish(ended)
	case err == nil:
		return w.pass(d)
	case ends(ctx, err):
		return backend.Delivery{}, false, err
	case ends(waiting, err): // the hub has a position
		return backend.Delivery{}, false, nil
	}
	return backend.Delivery{}, false, w.reopen(ctx, err)
}

// reopen closes a watch of the store that has ended with an error, so that another one is
// opened: if it was too slow, or only shards have expired that this watch does not cover.
func (w *Watcher) reopen(ctx context.Context, err error) error {
	if !errors.Is(err, backend.ErrLagged) || w.is(alone) {
		if err = w.skipExpired(ctx, err); err != nil && !ends(ctx, err) {
			return w.finish(err)
		}
	}
	w.closeSource()
	return nil
}

// is reports whether the watch is in a state.
func (w *Watcher) is(s watchState) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state == s
}

// maxReplays bounds the watches that read the store's log at the same time, as
// when many clients reconnect at once. A watch counts while it reads one page,
// not while its subscriber handles it.
const maxReplays = 64

// nextOfSource reads on in the store's watch. A watch that is alone waits there for new
// changes, too: it does not count as a replay.
func (w *Watcher) nextOfSource(ctx context.Context) (backend.Delivery, error) {
	if !w.is(alone) {
		select {
		case w.hub.replays <- struct{}{}:
			defer func() { <-w.hub.replays }()
		case <-ctx.Done():
			return backend.Delivery{}, ctx.Err()
		}
	}
	return w.source.Next(ctx)
}

// ends says whether the error is that of ctx, which has ended.
func ends(ctx context.Context, err error) bool { return ctx.Err() != nil && errors.Is(err, ctx.Err()) }

// interruptible sets what ends a wait for source, and returns what has ended the watch.
func (w *Watcher) interruptible(cancel context.CancelFunc) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.interrupt = cancel; cancel != nil && w.reachesQueue(w.position) {
		cancel()
	}
	return w.err
}

// pass returns what the watch covers of a delivery. It goes live when the delivery reaches the
// position where the queue begins.
func (w *Watcher) pass(d backend.Delivery) (backend.Delivery, bool, error) {
	d.Events = w.covered(d.Events)
	atHead := d.CaughtUp
	w.mu.Lock()
	was, further := w.state, !w.replayTo.Equal(w.openedTo)
	w.position = d.Position
	w.delivered += uint64(len(d.Events))
	isLive := w.goLive(d.Position)
	if was != alone {
		d.CaughtUp = isLive && len(w.queue) == 0 && !w.caughtUp
	}
	w.caughtUp = w.caughtUp || d.CaughtUp
	w.mu.Unlock()
	switch {
	case isLive:
		w.closeSource()
	case was == alone || !atHead:
	case further:
		// The queue begins after the last event that was read. The next watch of the store
		// reads up to there.
		w.closeSource()
	default:
		// The log ends before a position that the hub has already seen in it.
		return backend.Delivery{}, false, w.finish(backend.ErrPositionExpired)
	}
	return d, d.CaughtUp || len(d.Events) > 0, nil
}

// covered leaves out the events that the watch does not cover.
func (w *Watcher) covered(events []backend.Event) (out []backend.Event) {
	for i := range events {
		key := events[i].Resource.Key
		if w.shards.has(w.hub.shard(key.Namespace)) && (w.covers == nil || w.covers(key)) {
			out = append(out, events[i])
		}
	}
	return out
}

// closeSource closes the watch of the store.
func (w *Watcher) closeSource() {
	w.source.Close()
	w.mu.Lock()
	w.source = nil
	w.mu.Unlock()
}

// finish ends the watch and returns what it ended with.
func (w *Watcher) finish(err error) error {
	w.fail(err)
	if w.source != nil {
		w.source.Close()
	}
	w.hub.mu.Lock()
	w.hub.detach(w)
	w.hub.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}
