package bolt

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend"
)

// The states of the file, with the fields of core that show them:
//
//	           openFile, in Open
//	                  |
//	                  v    a commit fails
//	      +------>  open ------------------> opening <---------------------------+
//	      |       db != nil   startOpening   opening != nil                      |
//	      |                                    |     |                           |
//	      +------------- install --------------+     +-- install --> closed      |
//	          a new epoch; backoff is 0               an error       until retryAt
//	                                                                    |        |
//	                                                                    +--------+
//	                                                        the next call after retryAt
//
// While the file is being opened, calls wait. While it is closed, they return ErrUnavailable. A full disk is not a
// state of the file but of core.space: reads continue, and writes return ErrNoSpace until a probe succeeds.

// ErrLocked means that another process, or another store in this process, has the file open.
var ErrLocked = errors.New("the store file is in use by another process")

// The shortest and the longest pause before another attempt to open the file.
const (
	minBackoff = 20 * time.Millisecond
	maxBackoff = 5 * time.Second
)

// mapSize is the size of the address space that is reserved for the file; it takes no memory. Up to that size the file
// grows without being mapped again, for which writers would have to wait for readers, and then readers for writers. On
// Windows the file itself is made as large.
func mapSize() int {
	switch {
	case strconv.IntSize < 64:
		return 64 << 20
	case runtime.GOOS == "windows":
		return leastMap
	}
	return 64 << 30
}

// leastMap is the size of the address space if the process cannot have mapSize.
const leastMap = 1 << 30

// openFile opens the file, creating it if it does not exist, begins a new epoch in it, and returns its log record.
func (c *core) openFile() (db *bbolt.DB, log logRecord, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("bolt: open %s: %w", c.cfg.Path, err)
		}
	}()
	if c.cfg.ReadOnly {
		return c.openReadOnly()
	}
	if err := os.MkdirAll(filepath.Dir(c.cfg.Path), 0o750); err != nil {
		return nil, logRecord{}, pathCause(err)
	}
	db, file, err := openBolt(c.cfg.Path, c.options(openWhole))
	if errors.Is(err, fs.ErrNotExist) {
		if db, log, err = c.create(); !errors.Is(err, fs.ErrExist) {
			return db, log, err
		}
		db, file, err = openBolt(c.cfg.Path, c.options(openWhole))
	}
	if err != nil {
		return nil, logRecord{}, openCause(err)
	}
	err = guarded(func() (err error) {
		log, err = c.begin(db)
		return err
	})
	switch {
	case errors.Is(err, backend.ErrDamaged): // bbolt may hold a lock, for which its Close would wait
		_ = giveUp(file)
		return nil, logRecord{}, backend.FormatErrorf("%w", err)
	case err != nil:
		return nil, logRecord{}, errors.Join(err, db.Close())
	}
	return db, log, nil
}

// openReadOnly opens the file for reading, and returns its log record. The epoch stays the same, since nothing is
// written.
func (c *core) openReadOnly() (db *bbolt.DB, log logRecord, err error) {
	options := c.options(openWhole)
	options.ReadOnly = true
	db, _, err = openBolt(c.cfg.Path, options)
	if err != nil {
		return nil, logRecord{}, openCause(err)
	}
	err = guarded(func() error {
		return db.View(func(tx *bbolt.Tx) (err error) {
			if tx.Bucket([]byte(metaBucket)) == nil {
				err = strangers(tx)
				if err == nil {
					err = backend.FormatErrorf("the file is no store")
				}
				return err
			}
			if err = checkFormat(tx); err != nil {
				return err
			}
			if log, err = readLogRecord(tx); err != nil {
				return backend.FormatErrorf("%w", err)
			}
			c.acknowledged.Store(int64(tx.ID()))
			return nil
		})
	})
	if errors.Is(err, backend.ErrDamaged) {
		err = backend.FormatErrorf("%w", err)
	}
	if err != nil {
		return nil, logRecord{}, errors.Join(err, db.Close())
	}
	return db, log, nil
}

func (c *core) options(open func(string, int, os.FileMode) (*os.File, error)) *bbolt.Options {
	return &bbolt.Options{
		Timeout:      c.cfg.LockTimeout,
		FreelistType: bbolt.FreelistMapType,
		// The list of free pages is not written by every commit, but only by [core.closeFile]. After a crash, Open
		// reads all pages instead.
		NoFreelistSync:  true,
		InitialMmapSize: mapSize(),
		NoStatistics:    true,
		OpenFile:        open,
	}
}

// openBolt opens a database and converts panics of bbolt on damaged pages to errors. It also returns the file of the
// database: if bbolt has panicked, [giveUp] must release the lock of the file.
func openBolt(path string, o *bbolt.Options) (db *bbolt.DB, file *os.File, err error) {
	// Opening a named pipe would wait until another process writes to it.
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return nil, nil, backend.FormatErrorf("it is no regular file")
	}
	open := o.OpenFile
	o.OpenFile = func(path string, flag int, mode os.FileMode) (f *os.File, err error) {
		f, err = open(path, flag, mode)
		file = f
		return f, err
	}
	err = guarded(func() (err error) {
		if err := checkPages(path, o); err != nil {
			return err
		}
		db, err = bbolt.Open(path, 0o600, o)
		// The address space of the process may be limited.
		if errors.Is(err, syscall.ENOMEM) && o.InitialMmapSize > leastMap {
			o.InitialMmapSize = leastMap
			db, err = bbolt.Open(path, 0o600, o)
		}
		return err
	})
	if errors.Is(err, backend.ErrDamaged) {
		err = backend.FormatErrorf("%w", err)
		if file != nil {
			_ = giveUp(file)
		}
	}
	return db, file, err
}

// openCause converts an error of opening the file to an error for the user, which is a single line.
func openCause(err error) error {
	switch {
	case errors.Is(err, berrors.ErrTimeout):
		return ErrLocked
	case errors.Is(err, berrors.ErrInvalid), errors.Is(err, berrors.ErrVersionMismatch),
		errors.Is(err, berrors.ErrChecksum):
		return backend.FormatErrorf("the file is no store, or damaged (%w)", err)
	}
	return pathCause(err)
}

// pathCause removes paths from an error, because the caller adds the path.
func pathCause(err error) error {
	var pe *fs.PathError
	var le *os.LinkError
	switch {
	case errors.As(err, &pe):
		return fmt.Errorf("%s: %w", pe.Op, pe.Err)
	case errors.As(err, &le):
		return fmt.Errorf("%s: %w", le.Op, le.Err)
	}
	return err
}

// begin checks that the file is a store, and begins the next epoch.
func (c *core) begin(db *bbolt.DB) (log logRecord, err error) {
	tx, err := db.Begin(true)
	if err != nil {
		return logRecord{}, err
	}
	defer func() { err = errors.Join(err, rollback(tx)) }()
	if err := prepare(tx); err != nil {
		return logRecord{}, err
	}
	if log, err = readLogRecord(tx); err != nil {
		return logRecord{}, backend.FormatErrorf("%w", err)
	}
	epoch, err := backend.NextEpoch(log.State.Head().Epoch, c.cfg.Clock(), c.cfg.Rand)
	if err != nil {
		return logRecord{}, err
	}
	log.State.Begin(epoch)
	if err := writeLogRecord(tx, &log); err != nil {
		return logRecord{}, err
	}
	id := int64(tx.ID())
	if err := c.cfg.commit(tx.Commit); err != nil {
		return log, err
	}
	c.acknowledged.Store(id)
	return log, nil
}

// rollback ends a transaction, which may have been committed.
func rollback(tx *bbolt.Tx) error {
	if err := tx.Rollback(); err != nil && !errors.Is(err, berrors.ErrTxClosed) {
		return err
	}
	return nil
}

// database returns the open file. While the file is being reopened, it waits. If reopening fails, it is tried again
// after a pause; until then database returns ErrUnavailable.
func (c *core) database(ctx context.Context) (*bbolt.DB, error) {
	for {
		c.mu.Lock()
		db := c.db
		opening := c.opening
		cause := c.cause
		switch {
		case c.closed():
			c.mu.Unlock()
			return nil, backend.ErrClosed
		case db != nil:
			c.mu.Unlock()
			return db, nil
		case opening == nil && time.Now().Before(c.retryAt):
			c.mu.Unlock()
			return nil, fmt.Errorf("%w: %w", backend.ErrUnavailable, cause)
		case opening == nil:
			opening = c.startOpening(nil)
		}
		c.mu.Unlock()
		select {
		case <-opening:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// startOpening closes the file if it is open, and opens it again in another goroutine. The returned channel is closed
// when that has ended. cause is the reason why the file is reopened; nil leaves the previous reason. The caller holds
// mu, and no other goroutine is opening the file. In addition, the core must not be closed, or running must count the
// caller, so that release waits for the goroutine.
func (c *core) startOpening(cause error) <-chan struct{} {
	old, done := c.db, make(chan struct{})
	c.db, c.opening = nil, done
	c.progress.Fire()
	c.setHead()
	if cause != nil {
		c.cause = cause
	}
	c.running.Go(func() {
		defer close(done)
		if old != nil {
			if err := old.Close(); err != nil {
				c.cfg.Logger.Error("closing the store file after a failed commit", zap.Error(err))
			}
		}
		db, log, err := c.openFile()
		c.mu.Lock()
		defer c.mu.Unlock()
		c.opening = nil
		c.install(db, log, err)
	})
	return done
}

// install makes the result of openFile the current state of the file. The caller holds mu.
func (c *core) install(db *bbolt.DB, log logRecord, err error) {
	if err != nil {
		c.backoff = min(max(2*c.backoff, minBackoff), maxBackoff)
		c.retryAt = time.Now().Add(c.backoff)
		c.cause = err
		c.cfg.Logger.Error("the store is unavailable", zap.Error(err), zap.Duration("retryAfter", c.backoff))
	} else {
		c.db = db
		c.cause = nil
		c.backoff = 0
		c.tail.reset(&c.state, &log.State)
		c.state = log.State
		c.setHead()
	}
	c.changed.Fire()
}

// Offsets in the two meta pages of bbolt, for openWhole. A page begins with a head of 16 bytes. A meta has 56 bytes,
// followed by their FNV-1a sum, in the byte order of the machine.
const (
	metaAt        = 16
	metaLen       = 56
	boltMagic     = 0xED0CDAED
	rootAt        = metaAt + 16
	pageSizeAt    = metaAt + 8
	freeListAt    = metaAt + 32
	highWaterAt   = metaAt + 40
	transactionAt = metaAt + 48
	defaultPages  = 4096
)

// openWhole opens a file for bbolt, and returns an error if the file was truncated. bbolt maps the file into memory,
// and reading a missing page would kill the process. openWhole does not create a file, and refuses an empty one, in
// which bbolt would create a new store.
func openWhole(path string, flag int, mode os.FileMode) (*os.File, error) {
	f, err := os.OpenFile(path, flag&^os.O_CREATE, mode)
	if err != nil {
		return nil, err
	}
	need := max(wholeSize(f, 0), wholeSize(f, 1))
	// A writer grows the file before a meta page mentions the new size, so the size of the file is read last.
	info, err := f.Stat()
	switch {
	case err != nil:
	case info.Size() == 0:
		err = backend.FormatErrorf("the file is empty, and no store ever is: restore a copy, or remove the file to begin with an empty store")
	case info.Size() < need:
		err = backend.FormatErrorf("the file is damaged: cut off at %d bytes of at least %d", info.Size(), need)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// wholeSize returns the minimum size of the file according to one of its meta pages; 0 if that page is not valid.
func wholeSize(f io.ReaderAt, meta int) int64 {
	page, size := readMeta(f, meta)
	if page == nil {
		return 0
	}
	return int64(binary.NativeEndian.Uint64(page[highWaterAt:])) * size
}

// readMeta returns the beginning of a meta page, nil if the page is not valid, and the page size.
func readMeta(f io.ReaderAt, meta int) (page []byte, size int64) {
	page = make([]byte, metaAt+metaLen+8)
	if _, err := f.ReadAt(page, 0); err != nil {
		return nil, 0
	}
	size = defaultPages
	if metaValid(page) {
		size = int64(binary.NativeEndian.Uint32(page[pageSizeAt:]))
	}
	if meta == 1 {
		if _, err := f.ReadAt(page, size); err != nil {
			return nil, 0
		}
	}
	if !metaValid(page) {
		return nil, 0
	}
	return page, size
}

// newestMeta returns the beginning of the meta page of the last commit, nil if none is valid, and the page size.
func newestMeta(f io.ReaderAt) (newest []byte, size int64) {
	var last uint64
	for meta := range 2 {
		page, pageSize := readMeta(f, meta)
		if page == nil {
			continue
		}
		if id := binary.NativeEndian.Uint64(page[transactionAt:]); newest == nil || id > last {
			newest = page
			size = pageSize
			last = id
		}
	}
	return newest, size
}

// freePagesListed reports whether the list of free pages was written with a meta page: see [core.closeFile].
func freePagesListed(meta []byte) bool {
	return binary.NativeEndian.Uint64(meta[freeListAt:]) != math.MaxUint64
}

func metaValid(b []byte) bool {
	sum := fnv.New64a()
	_, _ = sum.Write(b[metaAt : metaAt+metaLen])
	return binary.NativeEndian.Uint32(b[metaAt:]) == boltMagic &&
		binary.NativeEndian.Uint64(b[metaAt+metaLen:]) == sum.Sum64()
}
