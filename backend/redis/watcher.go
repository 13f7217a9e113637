package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/sluicegw/sluice/backend"
)

const (
	// watchPage is the maximum number of entries of a shard that are read at once.
	watchPage = 256
	// waitPage is the maximum number of entries that one XREAD returns. It is divided among the shards on which XREAD
	// waits, but each may return at least one. It is small, because XREAD cannot limit the bytes of its answer. The
	// remaining entries are read by readLog, which can.
	waitPage = 8
	// linger is how long a watcher pauses after it has delivered all changes, so that a busy log is not read entry by
	// entry. A change after a time without changes is delivered at once, and so is one for which a reader of the heads
	// waits.
	linger = 2 * time.Millisecond
)

// Watch implements [backend.Store].
func (s *Store) Watch(ctx context.Context, w backend.Watch) (backend.Watcher, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	n := len(s.core.shards)
	out := &watcher{
		store:   s,
		maxLag:  w.MaxLag,
		pos:     make([]backend.Revision, n),
		closed:  make(chan struct{}),
		results: make(chan waited, n),
	}
	if out.maxLag <= 0 {
		out.maxLag = backend.DefaultMaxLag
	}
	if !w.From.IsZero() && w.From.Shards() != n {
		return nil, backend.ErrPositionExpired
	}
	page, err := s.readLog(ctx, logRead{})
	if err != nil {
		return nil, err
	}
	var lost backend.ExpiredError
	for i := range out.pos {
		if w.From.IsZero() {
			out.pos[i] = page.states[i].Head()
			continue
		}
		out.pos[i] = w.From.Shard(i)
		if page.states[i].Resume(out.pos[i]) != nil {
			lost.Lose(i, page.states[i].Shared(out.pos[i]))
		}
	}
	if lost.Shards != nil {
		return nil, &lost
	}
	// A command can wait on all shards of a single server, but only on one slot of a cluster.
	for i := range out.pos {
		if s.core.at.Cluster || i == 0 {
			out.waits = append(out.waits, shardGroup{})
		}
		last := &out.waits[len(out.waits)-1]
		last.shards = append(last.shards, i)
	}
	return out, nil
}

// watcher reads the log page by page until it has caught up. Then it waits on the server for changes.
type watcher struct {
	store    *Store
	pos      []backend.Revision
	maxLag   int
	turn     int // the shard that the last look read first
	caughtUp bool
	err      error // what ended the watch
	live     time.Time
	waits    []shardGroup
	results  chan waited
	once     sync.Once
	closed   chan struct{}
}

var _ backend.Watcher = (*watcher)(nil)

// shardGroup is a group of shards on which one command waits.
type shardGroup struct {
	shards  []int
	waiting bool
}

// waited is the result of waiting on a group.
type waited struct {
	group   int
	streams []goredis.XStream
	err     error
}

// Close ends the watch. A waiting Next returns ErrClosed.
func (w *watcher) Close() { w.once.Do(func() { close(w.closed) }) }

// Next implements [backend.Watcher].
func (w *watcher) Next(ctx context.Context) (backend.Delivery, error) {
	if err := w.gather(ctx); err != nil {
		return backend.Delivery{}, err
	}
	for w.err == nil {
		if err := w.ended(); err != nil {
			w.err = err
			break
		}
		if err := ctx.Err(); err != nil {
			return backend.Delivery{}, err
		}
		d, ok, err := w.look(ctx)
		if err != nil {
			if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
				return backend.Delivery{}, err
			}
			w.err = err
			break
		}
		if ok {
			return d, nil
		}
		if d, ok, err = w.wait(ctx); err != nil {
			return backend.Delivery{}, err
		}
		if ok {
			return d, nil
		}
	}
	return backend.Delivery{}, w.err
}

// ended returns ErrClosed if the watcher or the store was closed.
func (w *watcher) ended() error {
	select {
	case <-w.closed:
		return backend.ErrClosed
	case <-w.store.closed:
		return backend.ErrClosed
	default:
		return nil
	}
}

// gather pauses if changes were delivered within the last linger.
func (w *watcher) gather(ctx context.Context) error {
	rest := linger - time.Since(w.live)
	if w.err != nil || w.live.IsZero() || rest <= 0 {
		return nil
	}
	t := time.NewTimer(rest)
	defer t.Stop()
	select {
	case <-t.C:
	case <-w.store.core.skipPause:
	case <-w.closed:
	case <-w.store.closed:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// look reads the logs once. ok is false if there is nothing to deliver.
func (w *watcher) look(ctx context.Context) (d backend.Delivery, ok bool, err error) {
	w.turn = (w.turn + 1) % len(w.pos)
	page, err := w.store.readLog(ctx, logRead{after: w.pos, limit: watchPage, turn: w.turn})
	if err != nil {
		return d, false, err
	}
	var lost backend.ExpiredError
	behind := 0
	for i := range w.pos {
		if page.states[i].Resume(w.pos[i]) != nil {
			lost.Lose(i, page.states[i].Shared(w.pos[i]))
			continue
		}
		behind += page.states[i].Behind(w.pos[i])
	}
	if lost.Shards != nil {
		return d, false, &lost
	}
	if w.caughtUp && behind > w.maxLag {
		return d, false, &backend.LaggedError{Position: backend.NewPosition(w.pos...)}
	}
	head, from := true, slices.Clone(w.pos)
	for i := range w.pos {
		events, at, err := follow(&page.states[i], w.pos[i], page.entries[i])
		if err == nil && !page.more[i] && at != page.states[i].Head() {
			err = fmt.Errorf(
				"the log ends at %s and not at %s: %w", at, page.states[i].Head(), backend.ErrPositionExpired,
			)
		}
		if err != nil && len(events) == 0 {
			lost.Lose(i, backend.Revision{})
		}
		w.deliver(&d, i, at, events)
		head = head && at == page.states[i].Head()
	}
	if lost.Shards != nil && len(d.Events) == 0 {
		return d, false, &lost
	}
	if head && !w.caughtUp {
		w.caughtUp, d.CaughtUp = true, true
	}
	d.Position = backend.NewPosition(w.pos...)
	if head && len(d.Events) > 0 {
		w.live = time.Now()
	}
	return d, d.CaughtUp || !slices.Equal(w.pos, from), nil
}

// deliver adds the events of a shard to a delivery, and moves the position of the shard to a revision. The revision may
// be after the last event, because not every entry of a log is an event.
func (w *watcher) deliver(d *backend.Delivery, shard int, at backend.Revision, events []backend.Event) {
	for _, e := range events {
		w.pos[shard] = e.Revision
		e.Position = backend.NewPosition(w.pos...)
		d.Events = append(d.Events, e)
	}
	w.pos[shard] = at
}

// wait waits on the server for the next changes. If ok is false, the log must be read.
func (w *watcher) wait(ctx context.Context) (d backend.Delivery, ok bool, err error) {
	for i := range w.waits {
		if !w.waits[i].waiting {
			w.waits[i].waiting = w.start(i)
		}
	}
	var r waited
	select {
	case r = <-w.results:
	case <-w.closed:
		return d, false, nil
	case <-w.store.closed:
		return d, false, nil
	case <-ctx.Done():
		return d, false, ctx.Err()
	}
	w.waits[r.group].waiting = false
	if r.err != nil && !errors.Is(r.err, goredis.Nil) {
		if w.ended() == nil {
			w.err = fmt.Errorf("watch: %w: %w", backend.ErrUnavailable, r.err)
		}
		return d, false, nil
	}
	for _, stream := range r.streams {
		for _, i := range w.waits[r.group].shards {
			if w.store.core.shards[i].log == stream.Stream && !w.take(&d, i, stream.Messages) {
				break
			}
		}
	}
	if len(d.Events) == 0 {
		return d, false, nil
	}
	d.Position = backend.NewPosition(w.pos...)
	w.live = time.Now()
	return d, true, nil
}

// take adds entries to a delivery as long as they follow the position without a gap and there is room. It returns false
// if entries are left, which look must read.
func (w *watcher) take(d *backend.Delivery, shard int, entries []goredis.XMessage) bool {
	size := 0
	for i := range d.Events {
		size += d.Events[i].Size()
	}
	for _, m := range entries {
		e, ok, err := decodeEntry(m)
		if err != nil || !ok {
			return false
		}
		if e.Revision.Compare(w.pos[shard]) <= 0 {
			continue
		}
		if e.Revision.Epoch != w.pos[shard].Epoch || e.Revision.Seq != w.pos[shard].Seq+1 {
			return false
		}
		size += e.Size()
		if size > backend.MaxDeliveryBytes && len(d.Events) > 0 {
			return false
		}
		w.deliver(d, shard, e.Revision, []backend.Event{e})
	}
	return true
}

// start begins to wait on a group in the background, for at most blockTime. It returns false if the store is closed.
func (w *watcher) start(group int) bool {
	s := w.store
	args := []any{
		"xread", "count", max(waitPage/len(w.waits[group].shards), 1), "block", blockTime.Milliseconds(), "streams",
	}
	for _, i := range w.waits[group].shards {
		args = append(args, s.core.shards[i].log)
	}
	for _, i := range w.waits[group].shards {
		args = append(args, streamID(w.pos[i]))
	}
	ses, err := s.core.acquire(s)
	if err != nil {
		return false
	}
	started := s.core.background(func() {
		defer ses.inflight.Done()
		// The XREAD of the client library would wait for the answer ten seconds longer.
		cmd := goredis.NewXStreamSliceCmd(context.Background(), args...)
		cmd.SetFirstKeyPos(int8(6))
		_ = ses.blocking.Process(context.Background(), cmd)
		streams, err := cmd.Result()
		if !errors.Is(err, goredis.Nil) { // goredis.Nil means that nothing came in time
			ses.locate(err)
		}
		w.results <- waited{group: group, streams: streams, err: err}
	})
	if !started {
		ses.inflight.Done()
	}
	return started
}
