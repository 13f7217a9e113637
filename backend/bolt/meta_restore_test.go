package bolt_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/bolt"
)

// TestMeta_RestoredCopy lets a file and its copy go on separately. A position of
// the one past the copy never resumes in the other; those before it do in both.
func TestMeta_RestoredCopy(t *testing.T) {
	for _, test := range []struct {
		says string
		copy func(t *testing.T, s *bolt.Store, cfg bolt.Config, to string) *bolt.Store
	}{
		{"taken while the store was closed", func(t *testing.T, s *bolt.Store, cfg bolt.Config, to string) *bolt.Store {
			mustClose(t, s)
			b, err := os.ReadFile(cfg.Path)
			wantErr(t, err, nil)
			wantErr(t, os.WriteFile(to, b, 0o600), nil)
			return mustOpen(t, cfg)
		}},
		{"taken from a store that goes on", func(t *testing.T, s *bolt.Store, _ bolt.Config, to string) *bolt.Store {
			f, err := os.Create(to)
			wantErr(t, err, nil)
			wantErr(t, s.CopyTo(f), nil)
			wantErr(t, f.Close(), nil)
			return s
		}},
	} {
		t.Run(test.says, func(t *testing.T) {
			dir := t.TempDir()
			cfg := bolt.Config{Path: filepath.Join(dir, "a.db")}
			a := mustOpen(t, cfg)
			begin, err := a.Position(t.Context())
			wantErr(t, err, nil)
			for range 5 {
				mustPut(t, a, "shared")
			}
			shared := replay(t, a, begin)
			copied := bolt.Config{Path: filepath.Join(dir, "b.db")}
			a = test.copy(t, a, cfg, copied.Path)
			b := mustOpen(t, copied)
			for range 8 {
				mustPut(t, a, "a")
				mustPut(t, b, "b")
			}
			for _, p := range []backend.Position{begin, shared[2].Position, shared[4].Position} {
				for s, name := range map[*bolt.Store]string{a: "a", b: "b"} {
					events := replay(t, s, p)
					if n := len(events); n < 8 || events[n-1].Resource.Name != name || events[n-8].Resource.Name != name {
						t.Errorf("%s after %s: %d events", name, p.Shard(0), n)
					}
				}
			}
			for _, pair := range [][2]*bolt.Store{{a, b}, {b, a}} {
				for _, e := range replay(t, pair[0], shared[4].Position) {
					_, err := follow(t.Context(), pair[1], e.Position)
					wantErr(t, err, backend.ErrPositionExpired)
				}
			}
			wantErr(t, a.Check(t.Context()), nil)
			wantErr(t, b.Check(t.Context()), nil)
		})
	}
}
