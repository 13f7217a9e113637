package bolt_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/bolt"
)

// taken writes a backup to a file and returns its path.
func taken(t *testing.T, b *bolt.Backup) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "backup.db")
	to, err := os.Create(path)
	wantErr(t, err, nil)
	n, err := io.Copy(to, b)
	wantErr(t, err, nil)
	if n != b.Size {
		t.Errorf("%d bytes, and it says %d", n, b.Size)
	}
	wantErr(t, to.Close(), nil)
	wantErr(t, b.Close(), nil)
	return path
}

func TestBackup_HasAllThatWasAcknowledgedBeforeItBegan(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, bolt.Config{Path: filepath.Join(dir, "sluice.db")})
	ctx, stop := context.WithCancel(t.Context())
	var writing sync.WaitGroup
	var mu sync.Mutex
	acknowledged := map[string]backend.Revision{"first": mustPut(t, s, "first").Revisions[0]}
	for w := range 4 {
		writing.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				name := fmt.Sprint("w", w, "-", i%50)
				res, err := s.Apply(context.WithoutCancel(ctx), batch(s, fmt.Sprint("r", w, "-", i), name, fmt.Sprint(i)))
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				acknowledged[name] = res.Revisions[0]
				mu.Unlock()
			}
		})
	}
	for range 3 {
		mu.Lock()
		before := map[string]backend.Revision{}
		for name, rev := range acknowledged {
			before[name] = rev
		}
		mu.Unlock()
		b, err := s.Backup(t.Context())
		wantErr(t, err, nil)
		path := taken(t, b)
		found, err := verified(t, path)
		if err != nil || len(found) > 0 {
			t.Errorf("%v, %v", found, err)
		}
		copied := mustOpen(t, bolt.Config{Path: path, ReadOnly: true})
		for name, rev := range before {
			got, err := copied.Get(t.Context(), key(name))
			wantErr(t, err, nil)
			if got[0] == nil || got[0].Revision.Compare(rev) < 0 {
				t.Errorf("%s is %v, and was acknowledged at %s", name, got[0], rev)
			}
		}
		mustClose(t, copied)
	}
	stop()
	writing.Wait()
	if left, _ := filepath.Glob(filepath.Join(dir, "*.copy-*")); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
}

func TestBackup_ThereIsOneAtATime(t *testing.T) {
	s := mustOpen(t, bolt.Config{Path: filepath.Join(t.TempDir(), "sluice.db")})
	first, err := s.Backup(t.Context())
	wantErr(t, err, nil)
	_, err = s.Backup(t.Context())
	wantErr(t, err, bolt.ErrBackup)
	wantErr(t, first.Close(), nil)
	wantErr(t, first.Close(), nil)
	second, err := s.Backup(t.Context())
	wantErr(t, err, nil)
	wantErr(t, second.Close(), nil)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = s.Backup(ended)
	wantErr(t, err, context.Canceled)
}
