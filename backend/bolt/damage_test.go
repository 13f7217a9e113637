package bolt_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/bbolt"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/bolt"
)

func TestDamage_OpenErrors(t *testing.T) {
	file := func(t *testing.T, content string) string {
		path := filepath.Join(t.TempDir(), "sluice.db")
		wantErr(t, os.WriteFile(path, []byte(content), 0o600), nil)
		return path
	}
	store := func(t *testing.T, edit func(tx *bbolt.Tx) error) string {
		path := filepath.Join(t.TempDir(), "sluice.db")
		mustClose(t, mustOpen(t, bolt.Config{Path: path}))
		db, err := bbolt.Open(path, 0o600, nil)
		wantErr(t, err, nil)
		wantErr(t, db.Update(edit), nil)
		wantErr(t, db.Close(), nil)
		return path
	}
	for _, test := range []struct {
		says string
		path func(t *testing.T) string
		want error
		text string
	}{
		{"a file that another store has open", func(t *testing.T) string {
			path := filepath.Join(t.TempDir(), "sluice.db")
			mustOpen(t, bolt.Config{Path: path})
			return path
		}, bolt.ErrLocked, "in use by another process"},
		{"a text", func(t *testing.T) string { return file(t, strings.Repeat("hello\n", 10_000)) }, backend.ErrFormat, "no store"},
		{"a short text", func(t *testing.T) string { return file(t, "hello") }, backend.ErrFormat, "no store"},
		{"a bbolt file of another program", func(t *testing.T) string {
			path := filepath.Join(t.TempDir(), "other.db")
			db, err := bbolt.Open(path, 0o600, nil)
			wantErr(t, err, nil)
			wantErr(t, db.Update(func(tx *bbolt.Tx) error { _, err := tx.CreateBucket([]byte("theirs")); return err }), nil)
			wantErr(t, db.Close(), nil)
			return path
		}, backend.ErrFormat, "another program"},
		{"a file of a newer release", func(t *testing.T) string {
			return store(t, func(tx *bbolt.Tx) error {
				return tx.Bucket([]byte("meta")).Put([]byte("format"), []byte{bolt.Format + 1})
			})
		}, backend.ErrFormat, "newer release"},
		{"a file of an older format", func(t *testing.T) string {
			return store(t, func(tx *bbolt.Tx) error {
				return tx.Bucket([]byte("meta")).Put([]byte("format"), []byte{bolt.Format - 1})
			})
		}, backend.ErrFormat, "the file has format 7, written before the first release; this one reads 8: begin with an empty folder"},
		{"a file without its log record", func(t *testing.T) string {
			return store(t, func(tx *bbolt.Tx) error { return tx.Bucket([]byte("meta")).Delete([]byte("log")) })
		}, backend.ErrFormat, "log record"},
		{"a file without one of its buckets", func(t *testing.T) string {
			return store(t, func(tx *bbolt.Tx) error { return tx.DeleteBucket([]byte("deleting")) })
		}, backend.ErrFormat, `no bucket "deleting"`},
		{"a file that was cut off", func(t *testing.T) string {
			path := filepath.Join(t.TempDir(), "sluice.db")
			s := mustOpen(t, bolt.Config{Path: path})
			for range 50 {
				_, err := s.Apply(t.Context(), batch(s, "x", "x", strings.Repeat("x", 50_000)))
				wantErr(t, err, nil)
			}
			mustClose(t, s)
			wantErr(t, os.Truncate(path, 32<<10), nil)
			return path
		}, backend.ErrFormat, "cut off"},
		{"an empty file", func(t *testing.T) string { return file(t, "") }, backend.ErrFormat, "the file is empty, and no store ever is: restore a copy, or remove the file to begin with an empty store"},
		{"a directory", func(t *testing.T) string { return t.TempDir() }, nil, "is a directory"},
		{"a path through a file", func(t *testing.T) string { return filepath.Join(file(t, "x"), "sluice.db") }, nil, "not a directory"},
	} {
		t.Run(test.says, func(t *testing.T) {
			path := test.path(t)
			_, err := bolt.Open(bolt.Config{Path: path, LockTimeout: 1})
			if err == nil || test.want != nil && !errors.Is(err, test.want) {
				t.Fatalf("error %v, want %v", err, test.want)
			}
			if !strings.Contains(err.Error(), test.text) || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %q, want one line with %q and %q", err, test.text, path)
			}
		})
	}
}

func TestDamage(t *testing.T) {
	setup := func(t *testing.T) *bolt.Store {
		return mustOpen(t, bolt.Config{Path: filepath.Join(t.TempDir(), "sluice.db")})
	}
	t.Run("a log entry that does not decode ends the watch after what lies before it", func(t *testing.T) {
		s := setup(t)
		begin, _ := s.Position(t.Context())
		var revisions []backend.Revision
		for _, name := range []string{"a", "b", "c", "d"} {
			revisions = append(revisions, mustPut(t, s, name).Revisions[0])
		}
		wantErr(t, s.Edit(func(_, log *bbolt.Bucket) error { return log.Put(bolt.EntryKey(revisions[2]), []byte{1, 2, 3}) }), nil)
		s.ForgetTail()
		events, err := follow(t.Context(), s, begin)
		wantErr(t, err, backend.ErrPositionExpired)
		if len(events) != 2 {
			t.Errorf("%d events came before it", len(events))
		}
		events, err = follow(t.Context(), s, backend.NewPosition(revisions[2]))
		if err != nil || len(events) != 1 {
			t.Errorf("%d events came after it, error %v", len(events), err)
		}
	})
	t.Run("a damaged log key stops no write, is logged once, and ends the watches that come to it", func(t *testing.T) {
		for name, damaged := range map[string]func(k []byte) []byte{
			"before all others":   func([]byte) []byte { return []byte{0} },
			"in its place":        func(k []byte) []byte { return append(k, 7) },
			"behind all others":   func([]byte) []byte { return []byte{255, 255} },
			"of a later epoch":    func(k []byte) []byte { return append([]byte{255}, k[1:]...) },
			"of an earlier epoch": func(k []byte) []byte { return append([]byte{0}, append(k[2:], 0)...) },
			"which is not there":  func([]byte) []byte { return nil },
			"with an empty entry": func(k []byte) []byte { return k },
		} {
			t.Run(name, func(t *testing.T) {
				core, logged := observer.New(zap.WarnLevel)
				s := mustOpen(t, bolt.Config{Path: filepath.Join(t.TempDir(), "sluice.db"), LogEntries: 3, Logger: zap.New(core)})
				begin, _ := s.Position(t.Context())
				var at []backend.Position
				for _, name := range []string{"a", "b"} {
					at = append(at, mustPut(t, s, name).Position)
				}
				wantErr(t, s.Edit(func(_, log *bbolt.Bucket) error {
					k := bolt.EntryKey(at[0].Shard(0))
					entry := bytes.Clone(log.Get(k))
					err := log.Delete(k)
					switch bad := damaged(bytes.Clone(k)); {
					case bad == nil:
					case bytes.Equal(bad, k):
						err = errors.Join(err, log.Put(bad, []byte{}))
					default:
						err = errors.Join(err, log.Put(bad, entry))
					}
					return err
				}), nil)
				s.ForgetTail()
				if events, err := follow(t.Context(), s, begin); len(events) > 0 || !errors.Is(err, backend.ErrPositionExpired) {
					t.Errorf("%d events came over the damage, error %v", len(events), err)
				}
				var last backend.Result
				for range 6 {
					last = mustPut(t, s, "c")
				}
				s.ForgetTail()
				_, err := follow(t.Context(), s, begin)
				wantErr(t, err, backend.ErrPositionExpired)
				before := last.Revisions[0]
				before.Seq--
				if events, err := follow(t.Context(), s, backend.NewPosition(before)); err != nil || len(events) != 1 {
					t.Errorf("%d events came after it, error %v", len(events), err)
				}
				if n := logged.FilterMessageSnippet("log entry").Len(); n > 1 {
					t.Errorf("it was logged %d times", n)
				}
			})
		}
	})
	t.Run("changes that the log has lost at its end end the watch", func(t *testing.T) {
		s := setup(t)
		begin, _ := s.Position(t.Context())
		last := mustPut(t, s, "a").Revisions[0]
		wantErr(t, s.Edit(func(_, log *bbolt.Bucket) error { return log.Delete(bolt.EntryKey(last)) }), nil)
		s.ForgetTail()
		_, err := follow(t.Context(), s, begin)
		wantErr(t, err, backend.ErrPositionExpired)
	})
	t.Run("a resource that does not decode is ErrUnreadable to a Get of it alone and skipped, counted, by others and by a Range", func(t *testing.T) {
		s := setup(t)
		for _, name := range []string{"a", "b", "c"} {
			b := batch(s, name, name, "1")
			b.Actions[0].Put.Deleting = true
			_, err := s.Apply(t.Context(), b)
			wantErr(t, err, nil)
		}
		wantErr(t, s.Edit(func(resources, _ *bbolt.Bucket) error { return resources.Put(key("b").Append(nil), []byte{99, 2, 3}) }), nil)
		_, err := s.Get(t.Context(), key("b"))
		wantErr(t, err, backend.ErrUnreadable)
		got, err := s.Get(t.Context(), key("a"), key("b"), key("c"))
		wantErr(t, err, nil)
		if got[0] == nil || got[1] != nil || got[2] == nil || s.Unreadable() != 1 {
			t.Errorf("a Get of three returned %v and counted %d", got, s.Unreadable())
		}
		for i, r := range []backend.Range{{}, {Reverse: true}, {Deleting: true}, {Count: true}, {Deleting: true, Count: true}} {
			r.Kind, r.Limit = "Net", 10
			page, err := s.Range(t.Context(), r)
			wantErr(t, err, nil)
			if n := len(page.Resources) + page.Count; n != 2 {
				t.Errorf("range %d has %d resources", i, n)
			}
			if n := s.Unreadable(); n != uint64(i+2) {
				t.Errorf("%d were counted after range %d", n, i)
			}
		}
		r := backend.Range{Kind: "Net", Limit: 1}
		for i, want := range []int{0, 1} { // the one before c is told of with c
			page, err := s.Range(t.Context(), r)
			wantErr(t, err, nil)
			if len(page.Unreadable) != want || len(page.Resources) != 1 {
				t.Fatalf("page %d has %d resources and tells of %d that do not decode", i, len(page.Resources), len(page.Unreadable))
			}
			r.Start = backend.Successor(backend.OrderTuple(page.Resources[0].Namespace, page.Resources[0].Name))
		}
		_, err = s.Apply(t.Context(), batch(s, "x", "b", "2"))
		wantErr(t, err, backend.ErrUnreadable)
		mustPut(t, s, "d")
		if err := s.Check(t.Context()); err == nil {
			t.Error("the check found nothing")
		}
	})
	t.Run("a resource that does not decode can be deleted, with all that leads to it", func(t *testing.T) {
		s := setup(t)
		b := batch(s, "x", "b", "1")
		b.Actions[0].Put.ExpiresAt = s.Now().AddDate(1, 0, 0)
		b.Actions[0].Put.Deleting = true
		b.Actions[0].Put.Refs, b.Actions[0].Put.Declared = []backend.Ref{{Key: key("a"), Bound: true}}, "declared"
		_, err := s.Apply(t.Context(), b)
		wantErr(t, err, nil)
		mustPut(t, s, "a")
		wantErr(t, s.Edit(func(resources, _ *bbolt.Bucket) error { return resources.Put(key("b").Append(nil), []byte{99, 2, 3}) }), nil)
		begin, _ := s.Position(t.Context())
		remove := func(name string, c backend.Condition) (backend.Result, error) {
			b := batch(s, "delete", name, "")
			b.Actions[0] = backend.Action{Key: key(name), If: c, Op: backend.OpDelete}
			return s.Apply(t.Context(), b)
		}
		_, err = remove("a", backend.Condition{Unreferenced: true})
		wantErr(t, err, backend.ErrReferenced) // nobody knows that it is free
		_, err = remove("b", backend.Condition{UID: "u"})
		wantErr(t, err, backend.ErrUnreadable)
		res, err := remove("b", backend.Condition{Presence: backend.Present})
		wantErr(t, err, nil)
		wantErr(t, s.Check(t.Context()), nil)
		_, err = remove("a", backend.Condition{Unreferenced: true})
		wantErr(t, err, nil)
		events := replay(t, s, begin)
		if e := events[0]; e.Type != backend.Deleted || e.Resource.Key != key("b") || e.Revision != res.Revisions[0] || len(e.Resource.Body) != 0 {
			t.Errorf("the log has %+v of %+v", e, e.Resource)
		}
		s.ForgetTail()
		if again := replay(t, s, begin); len(again) != 2 || again[0].Resource.Key != key("b") {
			t.Errorf("the file's log has %+v", again)
		}
		if _, err := remove("b", backend.Condition{}); !errors.Is(err, backend.ErrNotFound) {
			t.Errorf("the second time: %v", err)
		}
	})
	t.Run("the check finds an entry that is missing, and one too many", func(t *testing.T) {
		for _, bucket := range []string{"deleting", "refs", "expiry"} {
			for i, edit := range []func(*bbolt.Bucket) error{
				func(b *bbolt.Bucket) error { k, _ := b.Cursor().First(); return b.Delete(k) },
				func(b *bbolt.Bucket) error { return b.Put([]byte("more"), []byte{0}) },
			} {
				s := setup(t)
				b := batch(s, "x", "b", "1")
				b.Actions[0].Put.Deleting, b.Actions[0].Put.ExpiresAt = true, s.Now().AddDate(1, 0, 0)
				b.Actions[0].Put.Refs, b.Actions[0].Put.Declared = []backend.Ref{{Key: key("a"), Bound: true}}, "declared"
				_, err := s.Apply(t.Context(), b)
				wantErr(t, err, nil)
				wantErr(t, s.Check(t.Context()), nil)
				wantErr(t, s.EditBucket(bucket, edit), nil)
				if err := s.Check(t.Context()); err == nil || !strings.Contains(err.Error(), bucket) {
					t.Errorf("edit %d of %s: the check found %v", i, bucket, err)
				}
			}
		}
	})
	t.Run("an expiry without its resource does not stop the purge", func(t *testing.T) {
		s := setup(t)
		for _, name := range []string{"a", "b"} {
			b := batch(s, name, name, "1")
			b.Actions[0].Put.ExpiresAt = s.Now().AddDate(-1, 0, 0)
			_, err := s.Apply(t.Context(), b)
			wantErr(t, err, nil)
		}
		wantErr(t, s.Edit(func(resources, _ *bbolt.Bucket) error { return resources.Put(key("a").Append(nil), []byte{99, 2, 3}) }), nil)
		if n, err := s.Purge(t.Context()); n != 1 || err != nil {
			t.Errorf("%d were purged, error %v", n, err)
		}
		if n, err := s.Purge(t.Context()); n != 0 || err != nil {
			t.Errorf("then %d, error %v", n, err)
		}
	})
	t.Run("a watch that reads the file sees what one on the tail sees", func(t *testing.T) {
		s := setup(t)
		begin, _ := s.Position(t.Context())
		for range 300 {
			mustPut(t, s, "a")
		}
		want := replay(t, s, begin)
		s.ForgetTail()
		got := replay(t, s, begin)
		if len(got) != 300 || len(want) != 300 {
			t.Fatalf("%d and %d events", len(got), len(want))
		}
		for i := range got {
			if got[i].Revision != want[i].Revision || !got[i].Time.Equal(want[i].Time) {
				t.Errorf("event %d differs", i)
			}
		}
	})
	t.Run("Validate names every field that is out of range", func(t *testing.T) {
		err := bolt.Config{LogEntries: -1, LogAge: -1, LogBytes: -1, PurgeInterval: -1, LockTimeout: -1}.Validate()
		for _, name := range []string{"LogEntries", "LogAge", "LogBytes", "PurgeInterval", "LockTimeout"} {
			if err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("error %v does not name %s", err, name)
			}
		}
	})
}

// TestDamage_OfAnyPage flips bits in the heads of pages of a store's file, one file for each page. Whatever is read or
// written then, nothing panics: the store does not open, or each call that meets the damage says so in one line.
func TestDamage_OfAnyPage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sluice.db")
	s := mustOpen(t, bolt.Config{Path: path})
	for i := range 40 {
		_, err := s.Apply(t.Context(), batch(s, fmt.Sprint("k", i), "x", strings.Repeat("x", 500)))
		wantErr(t, err, nil)
	}
	mustClose(t, s)
	whole, err := os.ReadFile(path)
	wantErr(t, err, nil)
	const page = 4096
	whole = bytes.TrimRight(whole, "\x00") // bbolt makes a file larger than it needs
	whole = append(whole, make([]byte, 2*page-len(whole)%page)...)
	var refused, reported int
	for n := 2; n < len(whole)/page; n++ {
		for _, at := range []int{8, 10, 12} { // flags, count, overflow
			broken := filepath.Join(t.TempDir(), "sluice.db")
			content := slices.Clone(whole)
			content[n*page+at] ^= 0x41
			wantErr(t, os.WriteFile(broken, content, 0o600), nil)
			s, err := bolt.Open(bolt.Config{Path: broken})
			if err != nil {
				refused++
				if !errors.Is(err, backend.ErrFormat) || strings.Contains(err.Error(), "\n") {
					t.Errorf("page %d, byte %d: %v", n, at, err)
				}
				if _, again := bolt.Open(bolt.Config{Path: broken, LockTimeout: 1}); !errors.Is(again, backend.ErrFormat) {
					t.Errorf("page %d, byte %d: %v; opened again: %v", n, at, err, again)
				}
				wantErr(t, os.Remove(broken), nil)
				continue // a lock that the first try has left would be told of
			}
			var failed []error
			_, err = s.Range(t.Context(), backend.Range{Kind: "Net"})
			failed = append(failed, err)
			_, err = s.Get(t.Context(), backend.Key{Kind: "Net", Namespace: "x", Name: "k1"})
			failed = append(failed, err)
			_, err = s.Range(t.Context(), backend.Range{Kind: "Net", Count: true})
			failed = append(failed, err)
			for i := range 3 {
				_, err = s.Apply(t.Context(), batch(s, fmt.Sprint("new", i), "x", "x"))
				failed = append(failed, err)
			}
			damaged := false
			for _, err := range failed {
				if errors.Is(err, backend.ErrDamaged) {
					damaged = true
					if strings.Contains(err.Error(), "\n") {
						t.Errorf("page %d, byte %d: more than a line: %v", n, at, err)
					}
				}
			}
			if damaged {
				reported++
				if err := s.Ready(t.Context()); !errors.Is(err, backend.ErrDamaged) {
					t.Errorf("page %d, byte %d: it is ready: %v", n, at, err)
				}
			}
			_ = s.Close()
			info, err := os.Stat(broken)
			wantErr(t, err, nil)
			if info.Size() > 64<<20 {
				t.Errorf("page %d, byte %d: a few writes made the file %d bytes large", n, at, info.Size())
			}
			wantErr(t, os.Remove(broken), nil)
		}
	}
	t.Logf("%d files are refused, %d say that they are damaged", refused, reported)
	if refused+reported == 0 {
		t.Error("nothing was found")
	}
}

// TestClose_OfADamagedListOfFreePages damages one free page's number after the other, which puts the page far beyond the
// file. Where bbolt needs the page for the list that Close writes, Close says that the file is damaged.
func TestClose_OfADamagedListOfFreePages(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sluice.db")
	s := mustOpen(t, bolt.Config{Path: path})
	for _, value := range []string{strings.Repeat("x", 5000), "x"} { // pages are used, and then free
		for i := range 20 {
			_, err := s.Apply(t.Context(), batch(s, fmt.Sprint("k", i), "x", value))
			wantErr(t, err, nil)
		}
	}
	mustClose(t, s)
	whole, err := os.ReadFile(path)
	wantErr(t, err, nil)
	at := 4096 * freelistOf(t, path)
	opened, damaged := 0, 0
	for i := range uint64(binary.NativeEndian.Uint16(whole[at+10:])) {
		broken := filepath.Join(t.TempDir(), "sluice.db")
		content := slices.Clone(whole)
		content[at+16+8*i+7] = 2
		wantErr(t, os.WriteFile(broken, content, 0o600), nil)
		s, err := bolt.Open(bolt.Config{Path: broken})
		if err != nil {
			continue
		}
		opened++
		if err := s.Close(); err != nil {
			damaged++
			if !errors.Is(err, backend.ErrDamaged) || strings.Contains(err.Error(), "\n") {
				t.Errorf("free page %d: %v", i, err)
			}
		}
	}
	t.Logf("%d files were opened, %d of them were not closed", opened, damaged)
	if opened == 0 {
		t.Error("no file was opened")
	}
}

// TestOpen_ATornCopy is called damaged, not another program's: its root page has what another page had.
func TestOpen_ATornCopy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sluice.db")
	mustClose(t, mustOpen(t, bolt.Config{Path: path}))
	db, err := bbolt.Open(path, 0o600, nil)
	wantErr(t, err, nil)
	wantErr(t, db.Update(func(tx *bbolt.Tx) error { return tx.DeleteBucket([]byte("meta")) }), nil)
	wantErr(t, db.Close(), nil)
	_, err = bolt.Open(bolt.Config{Path: path})
	if !errors.Is(err, backend.ErrFormat) || !strings.Contains(err.Error(), "the file is damaged") || strings.Contains(err.Error(), "another program") {
		t.Errorf("%v", err)
	}
}
