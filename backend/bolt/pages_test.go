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
