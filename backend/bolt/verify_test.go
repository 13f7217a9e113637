package bolt_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/bolt"
)

// verified returns what a verification of the file at a path finds.
func verified(t *testing.T, path string) (found []backend.Damage, err error) {
	t.Helper()
	s, err := bolt.Open(bolt.Config{Path: path, ReadOnly: true})
	if err != nil {
		return nil, err
	}
	defer func() { _ = s.Close() }()
	_, err = s.Verify(t.Context(), backend.Verification{Found: func(d backend.Damage) { found = append(found, d) }})
	return found, err
}

// fillForVerify writes resources with references, deletions and expiries.
func fillForVerify(t *testing.T, s *bolt.Store, n int) {
	t.Helper()
	for i := range n {
		b := batch(s, fmt.Sprint("r", i), fmt.Sprint("k", i), strings.Repeat("body", 60))
		b.Actions[0].Put.Deleting = i%3 == 0
		if i%4 == 0 {
			b.Actions[0].Put.ExpiresAt = s.Now().AddDate(1, 0, 0)
		}
		b.Actions[0].Put.Declared = "declared"
		b.Actions[0].Put.Refs = []backend.Ref{{Key: key("t"), Bound: i%2 == 0}}
		_, err := s.Apply(t.Context(), b)
		wantErr(t, err, nil)
	}
	del := batch(s, "delete", "k1", "")
	del.Actions[0] = backend.Action{Key: key("k1"), Op: backend.OpDelete}
	_, err := s.Apply(t.Context(), del)
	wantErr(t, err, nil)
}

func TestVerify_NamesEachDamage(t *testing.T) {
	for _, test := range []struct {
		says string
		edit func(tx *bbolt.Tx) error
		want []string
	}{
		{"nothing", func(*bbolt.Tx) error { return nil }, nil},
		{"a record with a flipped bit", func(tx *bbolt.Tx) error {
			v := bytes.Clone(tx.Bucket([]byte("resources")).Get(key("k2").Append(nil)))
			v[len(v)-1] ^= 4
			return tx.Bucket([]byte("resources")).Put(key("k2").Append(nil), v)
		}, []string{"record Net/default/k2"}},
		{"a record that is gone", func(tx *bbolt.Tx) error {
			return tx.Bucket([]byte("resources")).Delete(key("k2").Append(nil))
		}, []string{"reference Net/default/k2", "reference Net/default/k2", "record Net/default/k2"}},
		{"a reference that is gone", func(tx *bbolt.Tx) error {
			k, _ := tx.Bucket([]byte("refs")).Cursor().First()
			return tx.Bucket([]byte("refs")).Delete(bytes.Clone(k))
		}, []string{"reference Net/default/k0"}},
		{"an expiry too many", func(tx *bbolt.Tx) error {
			return tx.Bucket([]byte("expiry")).Put(append(backend.AppendInt(nil, 1), key("k2").Append(nil)...), []byte{})
		}, []string{"expiry Net/default/k2"}},
		{"a deletion of nothing", func(tx *bbolt.Tx) error {
			return tx.Bucket([]byte("deleting")).Put(key("none").Append(nil), []byte{})
		}, []string{"deletion Net/default/none"}},
		{"a log entry that is gone", func(tx *bbolt.Tx) error {
			c := tx.Bucket([]byte("log")).Cursor()
			_, _ = c.First()
			_, _ = c.Next()
			_, _ = c.Next()
			k, _ := c.Next()
			return tx.Bucket([]byte("log")).Delete(bytes.Clone(k))
		}, []string{"log Net/default/k3", "log"}},
		{"a log entry with a flipped bit", func(tx *bbolt.Tx) error {
			k, v := tx.Bucket([]byte("log")).Cursor().Last()
			v = bytes.Clone(v)
			v[len(v)/2] ^= 1
			return tx.Bucket([]byte("log")).Put(bytes.Clone(k), v)
		}, []string{"log", "record Net/default/k1"}}, // it was the deletion of k1
	} {
		t.Run(test.says, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "sluice.db")
			s := mustOpen(t, bolt.Config{Path: path})
			fillForVerify(t, s, 12)
			mustClose(t, s)
			db, err := bbolt.Open(path, 0o600, nil)
			wantErr(t, err, nil)
			wantErr(t, db.Update(test.edit), nil)
			wantErr(t, db.Close(), nil)
			found, err := verified(t, path)
			wantErr(t, err, nil)
			var got []string
			for _, d := range found {
				at := d.Part
				if d.Key != (backend.Key{}) {
					at += " " + d.Key.String()
				}
				got = append(got, at)
			}
			if d := cmp.Diff(test.want, got); d != "" {
				t.Errorf("%s\n%v", d, found)
			}
		})
	}
}

// TestVerify_MissesNoDamageThatChangesAnAnswer flips bits anywhere in a closed file. Where a reader then gets other
// answers than before, the file is not opened, or the verification finds something.
func TestVerify_MissesNoDamageThatChangesAnAnswer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sluice.db")
	s := mustOpen(t, bolt.Config{Path: path})
	begin, err := s.Position(t.Context())
	wantErr(t, err, nil)
	fillForVerify(t, s, 60)
	mustClose(t, s)
	whole, err := os.ReadFile(path)
	wantErr(t, err, nil)
	used := len(bytes.TrimRight(whole, "\x00"))
	answers := func(path string) (out []string, refused bool) {
		s, err := bolt.Open(bolt.Config{Path: path, ReadOnly: true})
		if err != nil {
			return nil, true
		}
		defer func() { _ = s.Close() }()
		target := key("t")
		for _, r := range []backend.Range{
			{Kind: "Net", Limit: 100}, {Kind: "Net", Deleting: true, Limit: 100}, {Referenced: &target, Limit: 100},
			{Referenced: &target, BoundOnly: true, Limit: 100}, {Kind: "Net", Count: true},
		} {
			page, err := s.Range(t.Context(), r)
			out = append(out, fmt.Sprint(page.Count, err))
			for _, one := range page.Resources {
				out = append(out, fmt.Sprintf("%+v", *one))
			}
		}
		events, err := follow(t.Context(), s, begin)
		out = append(out, fmt.Sprint(len(events), err))
		return out, false
	}
	want, refused := answers(path)
	if refused {
		t.Fatal("the whole file is refused")
	}
	if found, err := verified(t, path); err != nil || len(found) > 0 {
		t.Fatalf("the whole file: %v, %v", found, err)
	}
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 0))
	files := 200
	if testing.Short() {
		files = 40
	}
	broken := filepath.Join(t.TempDir(), "broken.db")
	notOpened, named, changed := 0, 0, 0
	for range files {
		content := slices.Clone(whole)
		for range 4 {
			at := rnd.IntN(8 * used)
			content[at/8] ^= 1 << (at % 8)
		}
		wantErr(t, os.WriteFile(broken, content, 0o600), nil)
		got, refused := answers(broken)
		if refused {
			notOpened++
			continue
		}
		differs := !slices.Equal(got, want)
		if differs {
			changed++
		}
		found, err := verified(t, broken)
		switch {
		case err != nil || len(found) > 0:
			named++
		case differs:
			t.Errorf("seed %d: another answer, and nothing is found:\n%s", seed, cmp.Diff(want, got))
		}
	}
	t.Logf("%d files were not opened; of %d others with other answers and those without, %d have damage that is named", notOpened, changed, named)
}
