//go:build linux || darwin

package bolt

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// roomFor returns an error if the disk of a path has less than want bytes free.
func roomFor(path string, want int64) error {
	var disk unix.Statfs_t
	if err := unix.Statfs(path, &disk); err != nil {
		return nil //nolint:nilerr // the space is not known; writing shows whether it is enough
	}
	if free := int64(disk.Bavail) * int64(disk.Bsize); free < want {
		return errNoRoom(free, want)
	}
	return nil
}

// giveUp closes the file of a database that cannot be closed. It releases the lock explicitly, which would otherwise be
// held as long as the file is mapped.
func giveUp(f *os.File) error {
	return errors.Join(unix.Flock(int(f.Fd()), unix.LOCK_UN), f.Close())
}
