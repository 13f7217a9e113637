package bolt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"go.etcd.io/bbolt"

	"github.com/sluicegw/sluice/backend"
)

// A backup is a copy of the store's file as one commit has left it. The copy is made at the speed of the disk, in the
// folder of the file, and clients read from the copy. A slow client must not read the file itself: while a transaction
// is open, bbolt does not reuse pages, and if the file grew beyond its mapped size, all reads and writes would wait
// for the client (https://github.com/etcd-io/bbolt/issues/850).

const (
	// copySuffix precedes the random end in the name of a copy.
	copySuffix = ".copy-"
	// copyStep is the number of bytes after which a copy is synced, so that a commit waits at most for the sync of
	// that many bytes.
	copyStep = 4 << 20
	// copyMargin is how many bytes must be free on the disk in addition to the size of the copy, so that the store can
	// still write.
	copyMargin = 64 << 20
)

// ErrBackup means that another backup is in progress.
var ErrBackup = errors.New("another backup is under way")

// Backup is a copy of a store's file. Close removes it.
type Backup struct {
	// Size is the size of the copy in bytes.
	Size int64
	file *os.File
	once sync.Once
	done func()
}

// Read implements [io.Reader].
func (b *Backup) Read(p []byte) (int, error) { return b.file.Read(p) }

// Close closes and removes the copy.
func (b *Backup) Close() (err error) {
	b.once.Do(func() {
		defer b.done()
		err = b.file.Close()
		if gone := os.Remove(b.file.Name()); !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	})
	return err
}

// Backup copies the file as it is after some commit that includes everything acknowledged before the call. When Backup
// returns, the copy is complete. If another backup is in progress, the error is ErrBackup.
func (s *Store) Backup(ctx context.Context) (*Backup, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	if !s.core.copying.TryLock() {
		return nil, fmt.Errorf("bolt: backup: %w", ErrBackup)
	}
	out, err := s.core.backup(ctx)
	if err != nil {
		s.core.copying.Unlock()
		return nil, fmt.Errorf("bolt: backup: %w", pathCause(err))
	}
	out.done = s.core.copying.Unlock
	return out, nil
}

func (c *core) backup(ctx context.Context) (out *Backup, err error) {
	dir, base := filepath.Split(c.cfg.Path)
	to, err := os.CreateTemp(dir, base+copySuffix+"*")
	if err != nil {
		return nil, err
	}
	_ = os.Remove(to.Name()) // so that nothing is left if the process is killed; fails on some systems
	out = &Backup{file: to, done: func() {}}
	defer func() {
		if err != nil {
			_ = out.Close()
		}
	}()
	err = c.view(ctx, func(tx *bbolt.Tx) error {
		out.Size = tx.Size()
		if err := roomFor(filepath.Dir(c.cfg.Path), out.Size+copyMargin); err != nil {
			return err
		}
		db := tx.DB()
		_, err := tx.WriteTo(&syncedWriter{to: to, proceed: func() error { return c.mayContinue(ctx, db) }})
		return err
	})
	if err == nil {
		_, err = to.Seek(0, io.SeekStart)
	}
	return out, err
}

// mayContinue returns an error if a backup of db must stop. That is so if ctx has ended, if the store is closed, or if
// the file is being reopened, which waits for the transactions of db.
func (c *core) mayContinue(ctx context.Context, db *bbolt.DB) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if c.closed() {
		return backend.ErrClosed
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.db != db {
		return fmt.Errorf("the file is opened again: %w", backend.ErrUnavailable)
	}
	return nil
}

// syncedWriter writes to a file and syncs it after every copyStep bytes.
type syncedWriter struct {
	to *os.File
	// proceed returns an error if writing must stop.
	proceed func() error
	// pending is the number of bytes that were not synced yet.
	pending int
}

// Write implements [io.Writer].
func (w *syncedWriter) Write(p []byte) (int, error) {
	n, err := w.to.Write(p)
	w.pending += n
	if err != nil || w.pending < copyStep {
		return n, err
	}
	w.pending = 0
	if err := w.proceed(); err != nil {
		return n, err
	}
	return n, w.to.Sync()
}

func errNoRoom(free, want int64) error {
	return fmt.Errorf("the copy needs %d bytes beside the file, and %d are free: %w", want, free, backend.ErrNoSpace)
}
