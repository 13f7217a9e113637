//go:build unix

package audit

import (
	"os"
	"syscall"
)

// unlinked reports whether an open file no longer has a name.
func unlinked(info os.FileInfo) bool {
	known, ok := info.Sys().(*syscall.Stat_t)
	return ok && known.Nlink == 0
}
