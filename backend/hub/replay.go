package hub

import (
	"context"
	"errors"
	"slices"

	"github.com/sluicegw/sluice/backend"
)

// Watch begins a watch. A position that the log cannot continue from is
// [backend.ErrPositionExpired], here or from Next. That holds for the shards
// that the watch covers; on the others it begins at the present position.
func (h *Hub) Watch(ctx context.Context, req Watch) (*Watcher, error) {
	w, err := h.attach(req)
	if err != nil {
		return nil, err
	}
	if err := w.begin(ctx, req.From); err != nil {
		w.Close()
		return nil, err
	}
	return w, nil
}

// attach makes a watch. Its queue begins now if the hub follows the store.
func (h *Hub) attach(req Watch) (*Watcher, error) {
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
	if w.meet = h.place; w.meet.IsZero() {
		w.early = true
		h.early[w] = struct{}{}
		return w, nil
	}
	h.register(w)
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
	live := reached(from, at, &w.shards) && reached(at, from, &w.shards) && w.goLive(from)
	if !live {
		w.meet = later(w.meet, at)
	}
	w.mu.Unlock()
	if live {
		return nil
	}
	w.reading = true
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
		w.began = w.meet
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

// read takes the next delivery of the store's watch. Any error ends the watch,
// except that of ctx.
func (w *Watcher) read(ctx context.Context) (backend.Delivery, bool, error) {
	if w.rejoin() {
		return backend.Delivery{}, false, nil
	}
	if w.source == nil {
		err := w.open(ctx)
		if err != nil && !ends(ctx, err) {
			err = w.finish(err)
		}
		return backend.Delivery{}, false, err
	}
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := w.interruptible(cancel); err != nil {
		return backend.Delivery{}, false, w.finish(err)
	}
	d, err := w.next(waiting)
	if ended := w.interruptible(nil); ended != nil {
		return backend.Delivery{}, false, w.finish(ended)
	}
	if err == nil {
		return w.pass(d)
	}
	if ends(ctx, err) {
		return backend.Delivery{}, false, err
	}
	if ends(waiting, err) {
		return backend.Delivery{}, false, nil // to join the hub
	}
	if !errors.Is(err, backend.ErrLagged) || w.isEarly() {
		if err = w.skipExpired(ctx, err); err != nil && !ends(ctx, err) {
			return backend.Delivery{}, false, w.finish(err)
		}
	}
	w.shut()
	return backend.Delivery{}, false, nil
}

// maxReplays bounds the watches that read the store's log at the same time, as
// when many clients reconnect at once. A watch counts while it reads one page,
// not while its subscriber handles it.
const maxReplays = 64

// rejoin is the second half of [Hub.join], by the goroutine that calls Next: it
// closes the watch of the store. It says whether the watch is live, as it mostly
// is because it had read everything.
func (w *Watcher) rejoin() (live bool) {
	w.mu.Lock()
	joined := w.joined
	if joined {
		w.joined = false
		live = w.goLive(w.position)
	}
	w.mu.Unlock()
	if joined && w.source != nil {
		w.shut()
	}
	if live {
		w.reading = false
	}
	return live
}

// isEarly says whether the hub has no position yet.
func (w *Watcher) isEarly() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.early
}

// next reads on in the store's watch. As long as the hub has no position, that
// is where new changes come from too; such a wait does not count as a replay.
func (w *Watcher) next(ctx context.Context) (backend.Delivery, error) {
	if w.isEarly() {
		return w.source.Next(ctx)
	}
	select {
	case w.hub.replays <- struct{}{}:
		defer func() { <-w.hub.replays }()
	case <-ctx.Done():
		return backend.Delivery{}, ctx.Err()
	}
	return w.source.Next(ctx)
}

// ends says whether the error is that of ctx, which has ended.
func ends(ctx context.Context, err error) bool { return ctx.Err() != nil && errors.Is(err, ctx.Err()) }

// interruptible sets what ends a wait for source, and returns what has ended the watch.
func (w *Watcher) interruptible(cancel context.CancelFunc) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.interrupt = cancel; cancel != nil && w.joined {
		cancel()
	}
	return w.err
}

// pass returns what the watch covers of a delivery. It switches to the queue when
// the delivery reaches the position where that begins.
func (w *Watcher) pass(d backend.Delivery) (backend.Delivery, bool, error) {
	d.Events = w.covered(d.Events)
	atHead := d.CaughtUp
	w.mu.Lock()
	w.position = d.Position
	w.delivered += uint64(len(d.Events))
	live, early := w.goLive(d.Position), w.early
	further := w.joined || !w.meet.Equal(w.began)
	if !early {
		d.CaughtUp = live && len(w.queue) == 0 && !w.caughtUp
	}
	w.caughtUp = w.caughtUp || d.CaughtUp
	w.mu.Unlock()
	switch {
	case live:
		w.reading = false
		w.shut()
	case early || !atHead:
	case further:
		// The queue was dropped and now begins behind the head that was read. Another
		// watch of the store gets there, and has a mark of its own.
		w.shut()
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

// shut closes the watch of the store.
func (w *Watcher) shut() {
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
