package bolt_test

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/bolt"
)

// freelistOf is the page of the list of free pages in the newer one of bbolt's two meta
// pages; all ones if the file has none.
func freelistOf(t *testing.T, path string) uint64 {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	size := int(binary.NativeEndian.Uint32(b[16+8:]))
	newer, page := uint64(0), uint64(0)
	for _, meta := range [][]byte{b[16:], b[size+16:]} {
		if tx := binary.NativeEndian.Uint64(meta[48:]); tx >= newer {
			newer, page = tx, binary.NativeEndian.Uint64(meta[32:])
		}
	}
	return page
}

// TestFile_AStoreThatWasClosedKnowsItsFreePages so that the next start need not read the whole
// file; one that was not closed finds them all the same.
func TestFile_AStoreThatWasClosedKnowsItsFreePages(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sluice.db")
	s, err := bolt.Open(bolt.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	key := backend.Key{Kind: "Net", Namespace: "default", Name: "a"}
	put := backend.Action{Key: key, Op: backend.OpPut, Put: backend.Put{UID: "1", Body: []byte("j1")}}
	if _, err := s.Apply(t.Context(), backend.Batch{RequestID: "1", Deadline: time.Now().Add(time.Minute), Actions: []backend.Action{put}}); err != nil {
		t.Fatal(err)
	}
	if page := freelistOf(t, path); page != ^uint64(0) {
		t.Errorf("while it is open the list is on page %d", page)
	}
	crashed := filepath.Join(t.TempDir(), "sluice.db")
	b, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(crashed, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if page := freelistOf(t, path); page == ^uint64(0) {
		t.Error("after it was closed the file has no list of free pages")
	}
	for _, path := range []string{path, crashed} {
		s, err := bolt.Open(bolt.Config{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.Get(t.Context(), key)
		if err != nil || got[0] == nil || string(got[0].Body) != "j1" {
			t.Errorf("%v %v", got, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
