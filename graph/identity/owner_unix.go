//go:build unix

package identity

import (
	"io/fs"
	"syscall"
)

// ownedByRoot reports whether a file belongs to root.
func ownedByRoot(file fs.FileInfo) bool {
	about, ok := file.Sys().(*syscall.Stat_t)
	return ok && about.Uid == 0
}
