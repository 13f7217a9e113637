package operate

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/bolt"
	"github.com/sluicegw/sluice/cmd/sluice/commandtest"
	"github.com/sluicegw/sluice/internal/redistest"
)

// storedNets makes an embedded store in a folder, and returns the path of its file.
func storedNets(t *testing.T, folder string) string {
	t.Helper()
	path := filepath.Join(folder, "sluice.db")
	s, err := bolt.Open(bolt.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b\x1b[31m"} {
		key := backend.Key{Kind: "Net", Namespace: "ns", Name: name}
		put := backend.Put{UID: "u", Body: backend.EncodeBody([]byte("{}")), Declared: "d", Refs: []backend.Ref{{Key: backend.Key{Kind: "T", Name: "t"}}}}
		_, err := s.Apply(t.Context(), backend.Batch{
			RequestID: name, Deadline: s.Now().Add(time.Minute),
			Actions: []backend.Action{{Key: key, Op: backend.OpPut, Put: put}},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCheck_OfAnEmbeddedStoreNamesEachDamage(t *testing.T) {
	folder := t.TempDir()
	path := storedNets(t, folder)
	for _, place := range []string{folder, path} {
		out := commandtest.Must(t, newRoot, "check", place)
		if out != "2 records, 2 index entries and 2 changes were read: nothing is damaged\n" {
			t.Errorf("%s: %q", place, out)
		}
	}
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		key := backend.Key{Kind: "Net", Namespace: "ns", Name: "b\x1b[31m"}.Append(nil)
		form := append([]byte{}, tx.Bucket([]byte("resources")).Get(key)...)
		form[len(form)-1] ^= 1
		return tx.Bucket([]byte("resources")).Put(key, form)
	})
	if err == nil {
		err = db.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	out, errOut, code := commandtest.Run(t, newRoot, "check", folder)
	if code != 1 || errOut != "" || strings.Contains(out, "\x1b") || !strings.Contains(out, "record Net/ns/b") || !strings.Contains(out, "1 are damaged or missing") {
		t.Errorf("exit %d\n%q\n%q", code, out, errOut)
	}
	out, _, code = commandtest.Run(t, newRoot, "check", folder, "-o", "json")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	var damage damageLine
	var read readLine
	if len(lines) != 2 || json.Unmarshal([]byte(lines[0]), &damage) != nil || json.Unmarshal([]byte(lines[1]), &read) != nil {
		t.Fatalf("exit %d %q", code, out)
	}
	if code != 1 || damage.Part != "record" || damage.Kind != "Net" || damage.Name != "b\x1b[31m" || read != (readLine{Records: 2, Entries: 2, Changes: 2, Damaged: 1}) {
		t.Errorf("exit %d %+v %+v", code, damage, read)
	}
}

func TestCheck_OfAStoreThatIsFilledInPart(t *testing.T) {
	folder := t.TempDir()
	s, err := bolt.Open(bolt.Config{Path: filepath.Join(folder, "sluice.db")})
	if err != nil {
		t.Fatal(err)
	}
	record := backend.Action{
		Key: backend.Key{Kind: "_bootstrap", Name: "store"}, Op: backend.OpPut,
		Put: backend.Put{UID: "u", Body: backend.EncodeBody([]byte(`{"format":1,"state":"begun","file":"f"}`))},
	}
	_, err = s.Apply(t.Context(), backend.Batch{RequestID: "r", Deadline: s.Now().Add(time.Minute), Actions: []backend.Action{record}})
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	out, errOut, code := commandtest.Run(t, newRoot, "check", folder)
	if code != 1 || errOut != "" || !strings.Contains(out, "a bootstrap of the store has begun and not ended") {
		t.Errorf("exit %d\n%q\n%q", code, out, errOut)
	}
}

func TestCheck_SaysWhyAStoreCannotBeRead(t *testing.T) {
	folder := t.TempDir()
	path := storedNets(t, folder)
	open, err := bolt.Open(bolt.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	_, errOut, code := commandtest.Run(t, newRoot, "check", folder)
	if code != 1 || !strings.Contains(errOut, "is in use by another process") {
		t.Errorf("a store in use: exit %d %q", code, errOut)
	}
	if err := open.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 12<<10); err != nil {
		t.Fatal(err)
	}
	_, errOut, code = commandtest.Run(t, newRoot, "check", folder)
	if code != 1 || !strings.Contains(errOut, "the file is damaged: cut off") || strings.Count(errOut, "\n") != 1 {
		t.Errorf("a file that was cut off: exit %d %q", code, errOut)
	}
	_, errOut, code = commandtest.Run(t, newRoot, "check", filepath.Join(folder, "none"))
	if code != 2 || !strings.Contains(errOut, "there is no store at") {
		t.Errorf("no store: exit %d %q", code, errOut)
	}
}

func TestCheck_OfRedis(t *testing.T) {
	s := redistest.Start(t)
	_, errOut, code := commandtest.Run(t, newRoot, "check", s.URL())
	if code != 1 || !strings.Contains(errOut, "there is no store under the prefix") {
		t.Errorf("no store: exit %d %q", code, errOut)
	}
}
