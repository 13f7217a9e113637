//go:build !unix

package identity

import "io/fs"

// ownedByRoot returns false, because this system has no root.
func ownedByRoot(fs.FileInfo) bool { return false }
