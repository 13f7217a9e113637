package bolt_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/bolt"
)

// TestCheckPages_LeavesALockedFileAlone: its pages change while they are read, which looks like damage.
func TestCheckPages_LeavesALockedFileAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sluice.db")
	s := mustOpen(t, bolt.Config{Path: path})
	mustPut(t, s, "a")
	mustClose(t, s)
	other, err := bbolt.Open(path, 0o600, &bbolt.Options{NoFreelistSync: true})
	wantErr(t, err, nil)
	wantErr(t, other.Update(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("meta")).Put([]byte("x"), []byte("x"))
	}), nil)
	if page := freelistOf(t, path); page != ^uint64(0) {
		t.Fatalf("the list of free pages is on page %d", page)
	}
	size := int64(other.Info().PageSize)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	wantErr(t, err, nil)
	info, err := f.Stat()
	wantErr(t, err, nil)
	_, err = f.WriteAt(bytes.Repeat([]byte{0xff}, int(info.Size()-2*size)), 2*size)
	wantErr(t, errors.Join(err, f.Close()), nil)

	_, err = bolt.Open(bolt.Config{Path: path, LockTimeout: 1})
	if !errors.Is(err, bolt.ErrLocked) {
		t.Errorf("while another process has the file: %v", err)
	}
	wantErr(t, other.Close(), nil)
	_, err = bolt.Open(bolt.Config{Path: path, LockTimeout: 1})
	if !errors.Is(err, backend.ErrFormat) || !strings.Contains(err.Error(), "the file is damaged: page ") {
		t.Errorf("once it is free: %v", err)
	}
}

// TestCheckPages_FindsDamageOfASmallBucket: bbolt makes a copy of such a bucket on the heap, and would follow an offset
// or a length out of the copy. The garbage collector ends a process that has such a pointer.
func TestCheckPages_FindsDamageOfASmallBucket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sluice.db")
	mustClose(t, mustOpen(t, bolt.Config{Path: path}))
	whole, err := os.ReadFile(path)
	wantErr(t, err, nil)
	name := append([]byte("meta"), make([]byte, 16)...) // root page 0: the bucket is inside its parent's page
	const pageHead = 16
	for _, field := range []int{4, 8, 12} { // offset of the key, length of the key, length of the value
		content := bytes.Clone(whole)
		found := 0
		for at := bytes.Index(content, name); at >= 0; at = bytes.Index(content, name) {
			copy(content[at:], "META") // the same page of an earlier commit is in the file, too
			content[at+len(name)+pageHead+field+3] ^= 0x40
			found++
		}
		content = bytes.ReplaceAll(content, []byte("META"), []byte("meta"))
		if found == 0 {
			t.Fatal("there is no small bucket")
		}
		broken := filepath.Join(t.TempDir(), "sluice.db")
		wantErr(t, os.WriteFile(broken, content, 0o600), nil)
		for _, readOnly := range []bool{true, false} {
			_, err := bolt.Open(bolt.Config{Path: broken, ReadOnly: readOnly})
			if !errors.Is(err, backend.ErrFormat) || !strings.Contains(err.Error(), "the file is damaged: page ") {
				t.Errorf("field at %d, read-only %v: %v", field, readOnly, err)
			}
		}
	}
}
