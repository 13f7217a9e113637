package bolt

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"
	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/storekit"
	"github.com/sluicegw/sluice/internal/slab"
)

// core is the part that all handles of an open file share.
type core struct {
	cfg Config
	// closing is closed, with mu locked, when the last handle is closed.
	closing chan struct{}
	// slots limits how many calls wait to be committed.
	slots chan struct{}
	// running counts the goroutines that commit or open the file. None is started after closing is closed.
	running sync.WaitGroup
	// changed fires when the log has grown or the file was reopened.
	changed storekit.Broadcast
	// unreadable is the number of resources that reads have skipped.
	unreadable atomic.Uint64
	// copying is locked while a backup is in progress.
	copying sync.Mutex
	// head is the position of the end of the log. It is nil while the file is not open, and while an abandoned call may
	// still be applied. It is written with mu locked and read without.
	head atomic.Pointer[backend.Position]
	// acknowledged is the id of the last transaction that was published or has opened the file. progress fires when it
	// grows, and when the file is closed in order to be reopened.
	acknowledged atomic.Int64
	progress     storekit.Broadcast
	// gathered has capacity for one element; see awaited.
	gathered chan struct{}
	// behind is the length of the queue after the commit of the last group. If the group was not committed, it is the
	// length after the group was taken from the queue. It is used only by the goroutine that commits.
	behind int
	// damaged is the first damage that a call has found. unwritable is the reason why no more changes are accepted.
	// Both are nil if there is none.
	damaged    atomic.Pointer[damage]
	unwritable atomic.Pointer[error]
	// forms allocates the encoded values that a transaction puts into the buckets. Its memory is in use until the
	// commit, when bbolt copies the values to pages. It is used only by the goroutine that commits.
	forms slab.Slab[byte]

	mu      sync.Mutex // guards all below
	handles int
	// The state of the file; see file.go. db is nil unless the file is open. opening is not nil while the file is being
	// opened, and is closed when that has ended. cause is the error of the last commit or attempt to open the file;
	// retryAt is when to try again, and backoff the pause before that.
	db      *bbolt.DB
	opening <-chan struct{}
	cause   error
	backoff time.Duration
	retryAt time.Time
	// state is the state of the log after the last commit. It is replaced as a whole and never modified.
	state storekit.LogState
	tail  tail
	space space
	// queue has the calls that wait. committing reports whether a goroutine is committing them.
	queue      []*call
	committing bool
	// awaited is the number of calls that gather waits for; 0 if it does not wait. When that many are queued, enqueue
	// sets awaited to 0 and sends to gathered.
	awaited int
	// abandoned are the calls whose callers have given up during the commit.
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

// setHead updates head after a change of the fields that it depends on. The caller holds mu.
func (c *core) setHead() {
	if c.db == nil || len(c.abandoned) > 0 {
		c.head.Store(nil)
		return
	}
	at := backend.NewPosition(c.state.Head())
	c.head.Store(&at)
}

// release closes a handle. If it is the last one, release also closes the file.
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

// closeFile closes the file for good. It first writes the list of free pages, which commits do not write. Without the
// list, the next Open would have to read the whole file to find these pages.
func (c *core) closeFile() error {
	if c.cfg.ReadOnly {
		return c.db.Close()
	}
	if c.writable() != nil { // bbolt may hold a lock, for which Close would wait; the file is closed with the process
		return nil
	}
	c.db.NoFreelistSync = false
	err := guarded(func() error { return c.db.Update(func(*bbolt.Tx) error { return nil }) })
	if errors.Is(err, backend.ErrDamaged) { // bbolt may hold a lock here, too
		c.noteDamage(err)
		return err
	}
	if err != nil {
		c.cfg.Logger.Warn("the list of free pages is not written: the next start takes longer", zap.Error(err))
	}
	return c.db.Close()
}

// view runs read in a read transaction. read must not keep memory of the transaction. bbolt shows a commit to readers
// before its callers are answered, so view waits until they are. Therefore nothing that was read can be lost, and a
// head that is requested after a read includes everything that the read has shown.
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

// viewEarly is like view, but does not wait: read may see changes that are not acknowledged yet.
func (c *core) viewEarly(ctx context.Context, read func(*bbolt.Tx) error) error {
	for {
		db, err := c.database(ctx)
		if err != nil {
			return err
		}
		tx, err := db.Begin(false)
		if err != nil { // the file was closed in the meantime
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

// awaitCommit waits until a transaction is acknowledged, or until db is no longer the open file.
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

// readLog reads the log, from the tail in memory if that reaches back far enough, otherwise from the file.
func (c *core) readLog(ctx context.Context, after backend.Revision, limit int) (storekit.LogPage, error) {
	changed := c.changed.Wait()
	c.mu.Lock()
	switch {
	case c.closed():
		c.mu.Unlock()
		return storekit.LogPage{}, backend.ErrClosed
	case limit == 0 && c.db != nil, c.tail.covers(after) && (c.db != nil || c.opening != nil):
		// While the file is being reopened, the tail has all changes that were acknowledged.
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
	// The transaction may be newer than state. Entries are read only up to the end of the log in state; otherwise
	// watchers would get a change before its writer is answered.
	err := c.viewEarly(ctx, func(tx *bbolt.Tx) (err error) {
		page.Events, err = readEntries(tx, &page.State, after, limit)
		return err
	})
	return page, err
}
