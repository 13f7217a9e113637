//go:build unix

package credential

import (
	"io/fs"
	"os"
	"syscall"
)

// keepOwner gives a new file the owner of the file that it replaces. Otherwise a service could no longer read its file
// after root has changed the file.
func keepOwner(f *os.File, of fs.FileInfo) error {
	was, ok := of.Sys().(*syscall.Stat_t)
	if !ok || int(was.Uid) == os.Geteuid() {
		return nil
	}
	return f.Chown(int(was.Uid), int(was.Gid))
}
