//go:build !unix

package identity

import "io/fs"

// ownedByRoot reports false: there is no root.
func ownedByRoot(fs.FileInfo) bool { return false }
