package bolt_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/sluicegw/sluice/backend/bolt"
)

// files are the names in a folder.
func files(t *testing.T, dir string) (out []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	wantErr(t, err, nil)
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// A store that could not be made must not be in the way of the next start.
func TestCreate_AFileHasItsNameWhenItIsAStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sluice.db")
	broken := errors.New("no disk")
	_, err := bolt.Open(bolt.Config{Path: path}.WithCommit(func(func() error) error {
		if _, err := os.Stat(path); err == nil {
			t.Error("the file has its name before it is a store")
		}
		return broken
	}))
	wantErr(t, err, broken)
	if got := files(t, filepath.Dir(path)); got != nil {
		t.Errorf("%q was left", got)
	}
	wantErr(t, os.WriteFile(path+".new-1", nil, 0o600), nil) // as a process that was killed leaves
	s := mustOpen(t, bolt.Config{Path: path})
	mustPut(t, s, "a")
	if got := files(t, filepath.Dir(path)); len(got) != 1 || got[0] != "sluice.db" {
		t.Errorf("%q are there, want the store alone", got)
	}
	_, err = bolt.Open(bolt.Config{Path: path, LockTimeout: 1})
	wantErr(t, err, bolt.ErrLocked)
}

// A file that another process made meanwhile is not replaced.
func TestCreate_AFileThatIsMadeMeanwhileIsOpened(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sluice.db")
	made := false
	s, err := bolt.Open(bolt.Config{Path: path, LockTimeout: time.Second}.WithCommit(func(commit func() error) error {
		if !made {
			made = true
			db, err := bbolt.Open(path, 0o600, nil)
			wantErr(t, err, nil)
			wantErr(t, db.Close(), nil)
		}
		return commit()
	}))
	wantErr(t, err, nil)
	mustPut(t, s, "a")
	mustClose(t, s)
	s = mustOpen(t, bolt.Config{Path: path})
	if got := files(t, filepath.Dir(path)); len(got) != 1 {
		t.Errorf("%q are there, want the store alone", got)
	}
	wantErr(t, s.Check(t.Context()), nil)
}
