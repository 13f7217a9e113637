package bolt_test

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/bolt"
)

// disk is a seam that is full or not.
type disk struct {
	full            atomic.Bool
	op              string
	commits, probes atomic.Int64
}

func (d *disk) err() error {
	return &fs.PathError{Op: d.op, Path: "sluice.db", Err: syscall.ENOSPC}
}

// commit fails as bbolt does: it has rolled back.
func (d *disk) commit(commit func() error) error {
	d.commits.Add(1)
	if d.full.Load() {
		return d.err()
	}
	return commit()
}

func (d *disk) probe(int) error {
	d.probes.Add(1)
	if d.full.Load() {
		return d.err()
	}
	return nil
}

func (d *disk) open(t *testing.T) *bolt.Store {
	return mustOpen(t, bolt.Config{Path: filepath.Join(t.TempDir(), "sluice.db")}.WithCommit(d.commit).WithProbe(d.probe))
}

func TestSpace_ADiskThatIsFull(t *testing.T) {
	for _, test := range []struct {
		says string
		run  func(t *testing.T, d *disk, s *bolt.Store)
	}{
		{"fails a write at once, which was certainly not applied", func(t *testing.T, d *disk, s *bolt.Store) {
			begin, err := s.Position(t.Context())
			wantErr(t, err, nil)
			d.full.Store(true)
			_, err = s.Apply(t.Context(), batch(s, "a", "a", "1"))
			wantErr(t, err, backend.ErrUnavailable)
			wantErr(t, err, backend.ErrNoSpace)
			if now, err := s.Position(t.Context()); err != nil || now.String() != begin.String() {
				t.Errorf("the store is at %v, error %v: it was at %v", now, err, begin)
			}
			if rs, err := s.Get(t.Context(), key("a")); err != nil || rs[0] != nil {
				t.Errorf("%v, error %v", rs, err)
			}
		}},
		{"is not written to again until there is space", func(t *testing.T, d *disk, s *bolt.Store) {
			d.full.Store(true)
			for i := range 100 {
				_, err := s.Apply(t.Context(), batch(s, "a", "a", "1"))
				wantErr(t, err, backend.ErrNoSpace)
				if i == 0 {
					d.commits.Store(0)
				}
			}
			if n := d.commits.Load(); n != 0 {
				t.Errorf("%d commits were tried", n)
			}
		}},
		{"makes the store not ready, and that ends by itself", func(t *testing.T, d *disk, s *bolt.Store) {
			wantErr(t, s.Ready(t.Context()), nil)
			d.full.Store(true)
			_, err := s.Apply(t.Context(), batch(s, "a", "a", "1"))
			wantErr(t, err, backend.ErrNoSpace)
			for range 60 {
				wantErr(t, s.Ready(t.Context()), backend.ErrNoSpace)
				<-time.After(time.Second)
			}
			if n := d.probes.Load(); n < 3 || n > 20 {
				t.Errorf("%d looks in a minute", n)
			}
			d.full.Store(false)
			<-time.After(10 * time.Second)
			wantErr(t, s.Ready(t.Context()), nil)
			mustPut(t, s, "a")
		}},
		{"is left by a write when there is space", func(t *testing.T, d *disk, s *bolt.Store) {
			d.full.Store(true)
			_, err := s.Apply(t.Context(), batch(s, "a", "a", "1"))
			wantErr(t, err, backend.ErrNoSpace)
			d.full.Store(false)
			<-time.After(time.Second)
			mustPut(t, s, "a")
			wantErr(t, s.Ready(t.Context()), nil)
		}},
	} {
		t.Run(test.says, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &disk{op: "write"}
				s := d.open(t)
				test.run(t, d, s)
				wantErr(t, s.Check(t.Context()), nil)
				mustClose(t, s)
			})
		})
	}
}

// TestSpace_AFullDiskThatFailsASyncMayHaveTakenTheWrite as its pages were written.
func TestSpace_AFullDiskThatFailsASyncMayHaveTakenTheWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disk{op: "sync"}
		s := d.open(t)
		d.full.Store(true)
		done := make(chan error)
		go func() {
			_, err := s.Apply(t.Context(), batch(s, "a", "a", "1"))
			done <- err
		}()
		err := <-done
		if !errors.Is(err, backend.ErrUnknown) || errors.Is(err, backend.ErrNoSpace) || !strings.Contains(err.Error(), "no space") {
			t.Error(err)
		}
		d.full.Store(false)
		<-time.After(10 * time.Second)
		mustPut(t, s, "b")
		mustClose(t, s)
	})
}
