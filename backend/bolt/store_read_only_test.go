package bolt_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/bolt"
)

func TestStore_ReadOnlyChangesNothingInTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sluice.db")
	s := mustOpen(t, bolt.Config{Path: path})
	begin, err := s.Position(t.Context())
	wantErr(t, err, nil)
	due := batch(s, "x", "due", "1")
	due.Actions[0].Put.ExpiresAt = s.Now().Add(-time.Second)
	_, err = s.Apply(t.Context(), due)
	wantErr(t, err, nil)
	mustPut(t, s, "a")
	want, err := s.Get(t.Context(), key("a"))
	wantErr(t, err, nil)
	at, err := s.Position(t.Context())
	wantErr(t, err, nil)
	mustClose(t, s)
	before, err := os.ReadFile(path)
	wantErr(t, err, nil)
	wantErr(t, os.Chmod(path, 0o400), nil)

	readers := []*bolt.Store{
		mustOpen(t, bolt.Config{Path: path, ReadOnly: true}), mustOpen(t, bolt.Config{Path: path, ReadOnly: true}),
	}
	for _, s := range readers {
		if _, err := bolt.Open(bolt.Config{Path: path, LockTimeout: 1}); !errors.Is(err, bolt.ErrLocked) && !errors.Is(err, fs.ErrPermission) {
			t.Errorf("a writer opens it: %v", err)
		}
		got, err := s.Get(t.Context(), key("a"))
		wantErr(t, err, nil)
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
		if now, err := s.Position(t.Context()); err != nil || !now.Equal(at) {
			t.Errorf("position %v, %v; want %v", now, err, at)
		}
		if events := replay(t, s, begin); len(events) != 2 {
			t.Errorf("%d events", len(events))
		}
		_, err = s.Apply(t.Context(), batch(s, "y", "a", "2"))
		wantErr(t, err, backend.ErrReadOnly)
		if n, err := s.Purge(t.Context()); n != 0 || err != nil {
			t.Errorf("%d are purged, %v", n, err)
		}
		wantErr(t, s.Ready(t.Context()), nil)
	}
	for _, s := range readers {
		mustClose(t, s)
	}
	after, err := os.ReadFile(path)
	wantErr(t, err, nil)
	if !bytes.Equal(before, after) {
		t.Error("the file was changed")
	}
}

func TestStore_ReadOnlyMakesNoFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "folder", "sluice.db")
	_, err := bolt.Open(bolt.Config{Path: path, ReadOnly: true})
	wantErr(t, err, fs.ErrNotExist)
	if _, err := os.Stat(filepath.Dir(path)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder was made: %v", err)
	}
	wantErr(t, os.MkdirAll(filepath.Dir(path), 0o700), nil)
	wantErr(t, os.WriteFile(path, bytes.Repeat([]byte("hello"), 10_000), 0o600), nil)
	_, err = bolt.Open(bolt.Config{Path: path, ReadOnly: true})
	wantErr(t, err, backend.ErrFormat)
}
