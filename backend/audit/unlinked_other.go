//go:build !unix

package audit

import "os"

// unlinked returns false, because this system does not remove open files.
func unlinked(os.FileInfo) bool { return false }
