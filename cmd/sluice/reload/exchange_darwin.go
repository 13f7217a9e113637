package reload

import "golang.org/x/sys/unix"

// exchange swaps two folders atomically, see renamex_np(2), RENAME_SWAP.
func exchange(a, b string) error { return unix.RenamexNp(a, b, unix.RENAME_SWAP) }
