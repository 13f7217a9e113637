//go:build unix

package gateway

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// writable returns an error if this process cannot write to a file or folder.
func writable(path string) error {
	if err := unix.Access(path, unix.W_OK); err != nil {
		return fmt.Errorf("%s cannot be written: %w", path, err)
	}
	return nil
}
