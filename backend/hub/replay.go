package hub

import (
	"context"
	"errors"
	"slices"

	"github.com/sluicegw/sluice/backend"
)

// watchState is the source from which a watch takes its changes. A watch can end in each state; then Watcher.err is
// set.
//
//	the hub has no position             the hub follows the store
//
//	      Watch                                  Watch
//	        |                                      |
//	        v                                      v
//	      alone ----------- join ------------> replaying <--+
//	        |                                      |    |   |  the queue overflows: it is emptied, and
//	        v                        position is   |    +---+  replayTo moves to the change that did not fit
//	  ends with ErrLagged            at replayTo   v
//	  if its watch of the                        live ------>  ends with ErrLagged if the queue overflows
//	  store does
//
// A watch with nothing to read is live at once. The watchable store of etcd has similar groups: its unsynced watchers
// replay, and its synced ones are live. It has a third group for blocked watchers; here a live watch whose queue
// overflows ends.
//
// The queue of a watch begins at the position of the hub when the watch was attached, and the log is read up to there.
// So each change is delivered once, from the log or from the queue. If the hub is reset, a replaying watch reads up to
// the new position of the hub. A live watch that covers a lost shard ends with ErrPositionExpired, except in the case
// that Watcher.reset describes.
type watchState int

const (
	// alone: all changes come from the watch's own watch of the store.
	alone watchState = iota
	// replaying: a watch of the store reads the log up to replayTo, where the queue begins.
	replaying
	// live: all changes come from the queue.
	live
)

// Watch opens a watch. If the log cannot be continued from req.From on a shard that the watch covers, the error is
// [backend.ErrPositionExpired], either here or from Next. On other shards the watch then begins at the present
// position.
func (h *Hub) Watch(ctx context.Context, req Watch) (*Watcher, error) {
	w := h.newWatcher(req)
	if err := w.start(ctx, req.From); err != nil {
		w.Close()
		return nil, err
	}
	return w, nil
}

// newWatcher returns a watch. If the hub follows the store, the watch is attached, and its queue begins at the position
// of the hub.
func (h *Hub) newWatcher(req Watch) *Watcher {
	w := &Watcher{
		hub:    h,
		covers: req.Covers,
		lookup: req.Lookup,
		slot:   -1,
		wake:   make(chan struct{}, 1),
		shards: shards{all: req.Namespaces == nil},
	}
	for _, namespace := range req.Namespaces {
		w.shards.add(h.shard(namespace))
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	w.replayTo = h.Position()
	if w.replayTo.IsZero() {
		h.alone[w] = struct{}{}
		return w
	}
	w.state = replaying
	h.attach(w)
	return w
}

// start makes the watch live, or opens a watch of the store if the log must be read before the queue. It first gets the
// present position from the store, because the hub may be behind. If from is zero, the watch begins at that position,
// after all writes that its caller has made before. If the log is read, it is read at least up to that position. So a
// watch that has caught up has delivered everything that was in the store when the watch began.
func (w *Watcher) start(ctx context.Context, from backend.Position) error {
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
		from = merge(at, from, &w.shards) // shards that are not covered begin at the present
	}
	w.mu.Lock()
	w.position = from
	upToDate := coversOn(from, at, &w.shards) && coversOn(at, from, &w.shards)
	isLive := upToDate && w.goLive(from)
	if !isLive {
		w.replayTo = later(w.replayTo, at)
	}
	w.mu.Unlock()
	if isLive {
		return nil
	}
	return w.open(ctx)
}

// maxSkips is how often open skips expired shards that the watch does not cover.
const maxSkips = 3

// open opens a watch of the store at the position of the watch.
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
		if try == maxSkips {
			return err
		}
		if err := w.skipExpired(ctx, err); err != nil {
			return err
		}
	}
}

// skipExpired moves the position to the present on the expired shards that err names. It returns err if the watch
// covers one of them, or if err has another cause.
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
	w.position = merge(from, at, &lost.shards)
	w.mu.Unlock()
	return nil
}

// read returns the next delivery from the store's log, for a watch that is not live. If ok is false, there is nothing
// to deliver yet, and the caller tries again. An error ends the watch, unless ctx has ended.
func (w *Watcher) read(ctx context.Context) (d backend.Delivery, ok bool, err error) {
	w.mu.Lock()
	isLive := w.goLive(w.position) // join may have made it replay from there
	w.mu.Unlock()
	switch {
	case isLive:
		w.closeSource()
		return d, false, nil
	case w.source == nil:
		if err = w.open(ctx); err != nil && !endedBy(ctx, err) {
			err = w.finish(err)
		}
		return d, false, err
	}
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := w.setInterrupt(cancel)
	if ended == nil {
		d, err = w.nextOfSource(waiting)
		ended = w.setInterrupt(nil)
	}
	switch {
	case ended != nil:
		return backend.Delivery{}, false, w.finish(ended)
	case err == nil:
		return w.pass(d)
	case endedBy(ctx, err):
		return backend.Delivery{}, false, err
	case endedBy(waiting, err): // interrupted: the watch replays now, or its queue is reachable
		return backend.Delivery{}, false, nil
	}
	return backend.Delivery{}, false, w.dropSource(ctx, err)
}

// dropSource closes a watch of the store that has ended with err, so that read opens another one. It ends the watch and
// returns the error instead, if a covered shard has expired, if the watch was alone and too slow, or if err has another
// cause.
func (w *Watcher) dropSource(ctx context.Context, err error) error {
	lagged := errors.Is(err, backend.ErrLagged)
	switch {
	case lagged && w.is(alone):
		w.hub.lagged.Add(1)
		return w.finish(err)
	case !lagged:
		if err = w.skipExpired(ctx, err); err != nil && !endedBy(ctx, err) {
			return w.finish(err)
		}
	}
	w.closeSource()
	return nil
}

func (w *Watcher) is(s watchState) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state == s
}

// maxReplays is how many watches read the store's log at the same time, for example when many clients reconnect at
// once. A watch counts while it reads a page, not while its caller handles it.
const maxReplays = 64

// nextOfSource returns the next delivery of source. A watch that is alone does not count against maxReplays, because it
// waits there for new changes.
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

// endedBy reports whether ctx has ended and err is its error.
func endedBy(ctx context.Context, err error) bool {
	return ctx.Err() != nil && errors.Is(err, ctx.Err())
}

// setInterrupt sets the function that cancels waiting for source. If the queue can already continue, it calls the
// function at once. It returns the error with which the watch has ended; nil if it has not.
func (w *Watcher) setInterrupt(cancel context.CancelFunc) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.interrupt = cancel
	if cancel != nil && w.reachesQueue(w.position) {
		cancel()
	}
	return w.err
}

// pass returns the covered part of a delivery of source. The watch becomes live if the delivery reaches the position
// where the queue begins.
func (w *Watcher) pass(d backend.Delivery) (backend.Delivery, bool, error) {
	d.Events = w.covered(d.Events)
	atHead := d.CaughtUp
	w.mu.Lock()
	was, targetMoved := w.state, !w.replayTo.Equal(w.openedTo)
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
	case targetMoved:
		// The queue begins after the end of this read. The next watch of the store reads up to its beginning.
		w.closeSource()
	default:
		// The log ends before a position that the hub has reached: the store has lost changes.
		return backend.Delivery{}, false, w.finish(backend.ErrPositionExpired)
	}
	return d, d.CaughtUp || len(d.Events) > 0, nil
}

func (w *Watcher) covered(events []backend.Event) (out []backend.Event) {
	for i := range events {
		key := events[i].Resource.Key
		if w.shards.has(w.hub.shard(key.Namespace)) && (w.covers == nil || w.covers(key)) {
			out = append(out, events[i])
		}
	}
	return out
}

// closeSource closes the watch of the store, if it is open.
func (w *Watcher) closeSource() {
	if w.source == nil {
		return
	}
	w.source.Close()
	w.mu.Lock()
	w.source = nil
	w.mu.Unlock()
}

// finish ends the watch, in the goroutine that calls Next, and closes its source. It returns the error with which the
// watch has ended, which may be an earlier one.
func (w *Watcher) finish(err error) error {
	w.fail(err)
	w.closeSource()
	w.hub.mu.Lock()
	w.hub.detach(w)
	w.hub.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}
