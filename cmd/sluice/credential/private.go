package credential

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"github.com/sluicegw/sluice/cmd/sluice/config"
)

// MaxPrivate is the maximum size of a file for [ReadPrivate], in bytes.
const MaxPrivate = 8 << 20

const (
	// lockTime is how long a process waits for another one that changes the file.
	lockTime = time.Minute
	// lockPause is the time between two attempts to lock the file.
	lockPause = 10 * time.Millisecond
)

// ReadPrivate returns the contents of a file; nil if the file does not exist.
func ReadPrivate(path string) ([]byte, error) {
	data, err := config.ReadAtMost(path, MaxPrivate)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return data, err
}

// UpdatePrivate replaces or creates a file with the mode 0600.
//
// change is called with the old contents and returns the new ones. If it returns an error, the file is not changed. A
// lock on the file with the suffix .lock ensures that changes by several processes are made one after the other. A
// reader always sees a complete file. The file keeps its owner. If path is a symbolic link, its target is replaced.
func UpdatePrivate(ctx context.Context, path string, change func([]byte) ([]byte, error)) error {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	lock := flock.New(path+".lock", flock.SetPermissions(0o600))
	limit, cancel := context.WithTimeout(ctx, lockTime)
	defer cancel()
	switch _, err := lock.TryLockContext(limit, lockPause); {
	case ctx.Err() != nil:
		return ctx.Err()
	case limit.Err() != nil:
		return fmt.Errorf("%s: another process has held %s for %v", path, lock.Path(), lockTime)
	case err != nil:
		return err
	}
	defer func() { _ = lock.Unlock() }()
	before, err := ReadPrivate(path)
	if err != nil {
		return err
	}
	after, err := change(before)
	if err != nil || bytes.Equal(before, after) {
		return err
	}
	return replace(path, after)
}

// replace writes a new file next to the old one, and then renames it.
func replace(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-") // its mode is 0600
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if before, absent := os.Stat(path); absent == nil {
		err = errors.Join(err, keepOwner(f, before))
	}
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return err
	}
	syncFolder(filepath.Dir(path))
	return nil
}

// syncFolder syncs the entries of a folder to the disk, if the system supports that. Afterwards the caller may remove
// what only the old file needed, such as its key.
func syncFolder(path string) {
	folder, err := os.Open(path)
	if err != nil {
		return
	}
	_ = folder.Sync()
	_ = folder.Close()
}
