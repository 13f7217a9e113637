package bolt

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"io"
	"os"

	"github.com/sluicegw/sluice/backend"
)

// Offsets in bbolt's two meta pages of what openWhole needs. A page has a head of
// 16 bytes; a meta is 56 bytes and their FNV-1a sum, in the machine's byte order.
const (
	metaAt       = 16
	metaLen      = 56
	boltMagic    = 0xED0CDAED
	pageSizeAt   = metaAt + 8
	highWaterAt  = metaAt + 40
	defaultPages = 4096
)

// openWhole opens a file for bbolt and refuses one that was cut off. bbolt maps
// the file into memory, and reading a missing page would kill the process. It makes no
// file, and refuses an empty one, in which bbolt would start a new store.
func openWhole(path string, flag int, mode os.FileMode) (*os.File, error) {
	f, err := os.OpenFile(path, flag&^os.O_CREATE, mode)
	if err != nil {
		return nil, err
	}
	need := max(wholeSize(f, 0), wholeSize(f, 1))
	// A writer grows the file before it says so in a meta page, so the size is read last.
	info, err := f.Stat()
	switch {
	case err != nil:
	case info.Size() == 0:
		err = fmt.Errorf("the file is empty, and no store ever is: restore a copy, or remove the file to begin with an empty store: %w", backend.ErrFormat)
	case info.Size() < need:
		err = fmt.Errorf("the file is damaged: cut off at %d bytes of at least %d: %w", info.Size(), need, backend.ErrFormat)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// wholeSize is the minimum size of the file according to one of its meta pages, 0
// if that page is not valid.
func wholeSize(f io.ReaderAt, meta int) int64 {
	var b [metaAt + metaLen + 8]byte
	if _, err := f.ReadAt(b[:], 0); err != nil {
		return 0
	}
	size := int64(defaultPages)
	if metaValid(b[:]) {
		size = int64(binary.NativeEndian.Uint32(b[pageSizeAt:]))
	}
	if meta == 1 {
		if _, err := f.ReadAt(b[:], size); err != nil {
			return 0
		}
	}
	if !metaValid(b[:]) {
		return 0
	}
	return int64(binary.NativeEndian.Uint64(b[highWaterAt:])) * size
}

func metaValid(b []byte) bool {
	sum := fnv.New64a()
	_, _ = sum.Write(b[metaAt : metaAt+metaLen])
	return binary.NativeEndian.Uint32(b[metaAt:]) == boltMagic && binary.NativeEndian.Uint64(b[metaAt+metaLen:]) == sum.Sum64()
}
