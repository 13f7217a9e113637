package storekit

import (
	"context"
	"errors"
	"sync"

	"github.com/sluicegw/sluice/backend"
)

// LogReader reads the log of a store with one shard.
type LogReader interface {
	// ReadLog returns a consistent view of the log: its state, a channel that is closed at the next change, and the
	// entries after a revision, if the log can resume there. limit is the maximum number of entries. ReadLog may return
	// fewer, but at least one if there is any. If an entry cannot be decoded, it returns the entries before it; if
	// there are none, it returns ErrPositionExpired.
	ReadLog(ctx context.Context, after backend.Revision, limit int) (LogPage, error)
}

// LogPage is a consistent view of a log.
type LogPage struct {
	// Events may be changed by the caller, but not the values to which they point.
	Events  []backend.Event
	State   LogState
	Changed <-chan struct{}
	// Closed, if not nil, is closed when the reader is closed. ReadLog then returns ErrClosed.
	Closed <-chan struct{}
}

const watchPage = 256

// logWatcher is a [backend.Watcher] that reads from a [LogReader]. It keeps no events, so a slow watcher needs no
// memory.
type logWatcher struct {
	reader   LogReader
	pos      backend.Revision
	maxLag   int
	caughtUp bool
	err      error // what ended the watch
	once     sync.Once
	closed   chan struct{}
}

// NewLogWatcher returns a watcher. It fails with ErrPositionExpired if the log cannot resume at the position.
func NewLogWatcher(ctx context.Context, reader LogReader, w backend.Watch) (backend.Watcher, error) {
	l := &logWatcher{reader: reader, pos: w.From.Shard(0), maxLag: w.MaxLag, closed: make(chan struct{})}
	if l.maxLag <= 0 {
		l.maxLag = backend.DefaultMaxLag
	}
	page, err := reader.ReadLog(ctx, l.pos, 0)
	if err != nil {
		return nil, err
	}
	switch {
	case w.From.IsZero():
		l.pos = page.State.Head()
	case w.From.Shards() != 1:
		return nil, backend.ErrPositionExpired
	default:
		if page.State.Resume(l.pos) != nil {
			return nil, lostAt(&page.State, l.pos)
		}
	}
	return l, nil
}

// Close ends the watch. A Next that is waiting returns ErrClosed.
func (l *logWatcher) Close() { l.once.Do(func() { close(l.closed) }) }

// Next implements [backend.Watcher].
func (l *logWatcher) Next(ctx context.Context) (backend.Delivery, error) {
	for l.err == nil {
		select {
		case <-l.closed:
			l.err = backend.ErrClosed
			continue
		default:
		}
		if err := ctx.Err(); err != nil {
			return backend.Delivery{}, err
		}
		page, err := l.read(ctx)
		if err != nil {
			if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
				return backend.Delivery{}, err
			}
			l.err = err
			continue
		}
		if d, ok := l.take(page); ok {
			return d, nil
		}
		if page.State.Behind(l.pos) > 0 {
			continue
		}
		select {
		case <-page.Changed:
		case <-page.Closed:
		case <-l.closed:
		case <-ctx.Done():
			return backend.Delivery{}, ctx.Err()
		}
	}
	return backend.Delivery{}, l.err
}

// read returns the page after the current position, or the error that ends the watch.
func (l *logWatcher) read(ctx context.Context) (LogPage, error) {
	page, err := l.reader.ReadLog(ctx, l.pos, watchPage)
	if err != nil {
		return LogPage{}, err
	}
	if page.State.Resume(l.pos) != nil {
		return LogPage{}, lostAt(&page.State, l.pos)
	}
	if l.caughtUp && page.State.Behind(l.pos) > l.maxLag {
		return LogPage{}, &backend.LaggedError{Position: backend.NewPosition(l.pos)}
	}
	return page, nil
}

// lostAt returns the error for a watch that cannot continue at place.
func lostAt(log *LogState, place backend.Revision) error {
	var lost backend.ExpiredError
	lost.Lose(0, log.Shared(place))
	return &lost
}

// take converts a page to a delivery, and moves the current position to its end. It reports whether there is anything
// to deliver.
func (l *logWatcher) take(page LogPage) (backend.Delivery, bool) {
	head, from := page.State.Head(), l.pos
	var d backend.Delivery
	size := 0
	for i := range page.Events {
		e := &page.Events[i]
		size += e.Size()
		if size > backend.MaxDeliveryBytes && i > 0 {
			break
		}
		l.pos = e.Revision
		e.Position = backend.NewPosition(e.Revision)
		d.Events = page.Events[: i+1 : i+1]
	}
	if page.State.Behind(l.pos) == 0 {
		l.pos = head
		if !l.caughtUp {
			l.caughtUp, d.CaughtUp = true, true
		}
	}
	d.Position = backend.NewPosition(l.pos)
	return d, d.CaughtUp || l.pos != from
}

// Broadcast wakes up all goroutines that wait for the next event. The zero value is ready to use. It is safe for
// concurrent use.
type Broadcast struct {
	mu sync.Mutex
	ch chan struct{}
}

// Wait returns a channel that is closed by the next Fire.
func (b *Broadcast) Wait() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch == nil {
		b.ch = make(chan struct{})
	}
	return b.ch
}

// Fire closes all channels that Wait has returned so far.
func (b *Broadcast) Fire() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch != nil {
		close(b.ch)
		b.ch = nil
	}
}
