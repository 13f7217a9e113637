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

// A backup is a copy of the file as one commit left it. It is made at the speed of the disk, beside the file: as long
// as it takes, bbolt reuses no pages, and if the file grew beyond its map, all reads and writes would wait for it. So a
// client that is slow reads from the copy (https://github.com/etcd-io/bbolt/issues/850).

const (
	// copySuffix ends the name of a copy, before a random part.
	copySuffix = ".copy-"
	// copyStep is after how many bytes a copy is synced. A commit meanwhile waits for no more than that.
	copyStep = 4 << 20
	// copyMargin is how many bytes have to be free besides those that the copy takes: the store must not run full.
	copyMargin = 64 << 20
)

// ErrBackup is the error of a backup while another one is in progress.
var ErrBackup = errors.New("another backup is under way")

// Backup is a copy of a store's file. It is gone when it is closed.
type Backup struct {
	// Size is its size in bytes.
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

// Backup copies the file as it is after a commit that has all that was acknowledged before. The copy is complete, and
// lies in the folder of the file until it is closed. There is one at a time; others are ErrBackup.
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
	_ = os.Remove(to.Name()) // so that nothing is left if the process is killed; not all systems can
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
		_, err := tx.WriteTo(&syncedWriter{to: to, proceed: func() error { return c.holds(ctx, db) }})
		return err
	})
	if err == nil {
		_, err = to.Seek(0, io.SeekStart)
	}
	return out, err
}

// holds returns an error if a backup of db must stop: ctx has ended, the store is closed, or the
// file is being opened again, which waits for the transactions of db.
func (c *core) holds(ctx context.Context, db *bbolt.DB) error {
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

// syncedWriter writes to a file that is synced step by step.
type syncedWriter struct {
	to *os.File
	// proceed returns an error if writing must stop.
	proceed func() error
	// pending is how many bytes are not synced.
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

// errNoRoom is the error of a copy that there is no space for.
func errNoRoom(free, want int64) error {
	return fmt.Errorf("the copy needs %d bytes beside the file, and %d are free: %w", want, free, backend.ErrNoSpace)
}
