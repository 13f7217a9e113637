package bolt

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"
	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/storekit"
	"github.com/sluicegw/sluice/internal/slab"
)

// core is shared by the handles on one open file.
type core struct {
	cfg Config
	// closing is closed with the last handle, under mu.
	closing chan struct{}
	// slots bounds the calls that wait to be committed.
	slots chan struct{}
	// running counts the goroutines that commit or open the file. None starts after
	// closing was closed.
	running sync.WaitGroup
	// changed fires when the log has grown or the file was opened again.
	changed storekit.Broadcast
	// unreadable counts resources that reads skipped.
	unreadable atomic.Uint64
	// copying is held while there is a backup.
	copying sync.Mutex
	// head is the position of the log's head while the file is open and no abandoned call can
	// still be applied; else nil. It changes under mu, and is read without.
	head atomic.Pointer[backend.Position]
	// acknowledged is the id of the last transaction that was published, or that has
	// opened the file; progress fires when it grows or the file is closed to be opened again.
	acknowledged atomic.Int64
	progress     storekit.Broadcast
	// gathered has room for one value, see awaited.
	gathered chan struct{}
	// behind is how many calls were queued behind the last group: when it was on disk, or, if
	// nothing was committed, when it was taken. It belongs to the goroutine that commits.
	behind int
	// damaged is the first damage that a call met, unwritable why no changes are taken any more; nil for none.
	damaged    atomic.Pointer[damage]
	unwritable atomic.Pointer[error]
	// forms is memory for what a transaction puts into the buckets, of which bbolt makes
	// pages when it commits. It belongs to the goroutine that commits.
	forms slab.Slab[byte]

	mu      sync.Mutex // guards all below
	handles int
	// These are the state of the file, see file.go. db is nil unless the file is open. opening is
	// nil unless an attempt to open it is under way, and closed when that has ended. cause says
	// why the last commit or attempt failed; retryAt, backoff after it, is when to try again.
	db      *bbolt.DB
	opening <-chan struct{}
	cause   error
	backoff time.Duration
	retryAt time.Time
	// state is the state of the log after the last commit. It is replaced, never changed.
	state storekit.LogState
	tail  tail
	space space
	// queue holds the waiting calls; committing reports whether a goroutine works on it.
	queue      []*call
	committing bool
	// awaited is how many calls gather waits for, 0 if it does not wait. enqueue sets it to 0
	// and sends to gathered when that many are queued.
	awaited int
	// abandoned are the calls whose callers gave up during the commit.
	abandoned []*call
}

// closed reports whether the last handle was closed.
func (c *core) closed() bool {
	select {
	case <-c.closing:
		return true
	default:
		return false
	}
}

// setHead sets head from the fields that it depends on. The caller holds mu.
func (c *core) setHead() {
	if c.db == nil || len(c.abandoned) > 0 {
		c.head.Store(nil)
		return
	}
	at := backend.NewPosition(c.state.Head())
	c.head.Store(&at)
}

// release closes one handle, and the file with the last one.
func (c *core) release() error {
	c.mu.Lock()
	c.handles--
	if c.handles > 0 {
		c.mu.Unlock()
		return nil
	}
	close(c.closing)
	for _, w := range c.queue {
		w.finish(backend.ErrClosed)
	}
	c.queue = nil
	c.mu.Unlock()
	c.running.Wait()
	if c.db == nil {
		return nil
	}
	return c.closeFile()
}

// closeFile closes the file for good. It writes the list of free pages first, which no other
// commit does: else the next Open has to read the whole file to find them.
func (c *core) closeFile() error {
	if c.cfg.ReadOnly {
		return c.db.Close()
	}
	if c.writable() != nil { // bbolt may hold a lock, for which Close would wait; the file is closed with the process
		return nil
	}
	c.db.NoFreelistSync = false
	if err := c.db.Update(func(*bbolt.Tx) error { return nil }); err != nil {
		c.cfg.Logger.Warn("the list of free pages is not written: the next start takes longer", zap.Error(err))
	}
	return c.db.Close()
}

// view runs read in a read transaction. read must not keep the transaction's memory. bbolt shows a commit to
// readers before its callers are answered; view waits until they are. So nothing that was read can be lost,
// and a head that is asked for after a read covers everything that the read has shown.
func (c *core) view(ctx context.Context, read func(*bbolt.Tx) error) error {
	for {
		var db *bbolt.DB
		var early int64
		err := c.viewEarly(ctx, func(tx *bbolt.Tx) error {
			if id := int64(tx.ID()); id > c.acknowledged.Load() {
				db, early = tx.DB(), id
				return nil
			}
			return read(tx)
		})
		if err == nil && early > 0 {
			if err = c.awaitCommit(ctx, db, early); err == nil {
				continue
			}
		}
		return err
	}
}

// viewEarly is view without the wait: it may show changes that are not acknowledged yet.
func (c *core) viewEarly(ctx context.Context, read func(*bbolt.Tx) error) error {
	for {
		db, err := c.database(ctx)
		if err != nil {
			return err
		}
		tx, err := db.Begin(false)
		if err != nil { // the file was given up since
			if err := ctx.Err(); err != nil {
				return err
			}
			continue
		}
		err = guarded(func() error {
			defer func() { _ = rollback(tx) }()
			return read(tx)
		})
		c.noteDamage(err)
		return err
	}
}

// awaitCommit returns when a transaction was acknowledged, or the file was given up.
func (c *core) awaitCommit(ctx context.Context, db *bbolt.DB, id int64) error {
	for {
		progress := c.progress.Wait()
		c.mu.Lock()
		over := c.db != db
		c.mu.Unlock()
		if over || id <= c.acknowledged.Load() {
			return nil
		}
		select {
		case <-progress:
		case <-c.closing:
			return backend.ErrClosed
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// readLog reads the log: the tail in memory if it reaches back far enough, else the file.
func (c *core) readLog(ctx context.Context, after backend.Revision, limit int) (storekit.LogPage, error) {
	changed := c.changed.Wait()
	c.mu.Lock()
	switch {
	case c.closed():
		c.mu.Unlock()
		return storekit.LogPage{}, backend.ErrClosed
	case limit == 0 && c.db != nil, c.tail.covers(after) && (c.db != nil || c.opening != nil):
		// While the file is being reopened, the tail still holds what was acknowledged.
		page := storekit.LogPage{State: c.state, Changed: changed}
		if page.State.Resume(after) == nil {
			page.Events = c.tail.after(after, limit)
		}
		c.mu.Unlock()
		return page, nil
	}
	c.mu.Unlock()
	if _, err := c.database(ctx); err != nil {
		return storekit.LogPage{}, err
	}
	c.mu.Lock()
	page := storekit.LogPage{State: c.state, Changed: changed}
	c.mu.Unlock()
	// The transaction may be newer than the state. Entries are read up to the
	// state's head only: else watchers would hear of a change before its writer.
	err := c.viewEarly(ctx, func(tx *bbolt.Tx) (err error) {
		page.Events, err = readEntries(tx, &page.State, after, limit)
		return err
	})
	return page, err
}
