package index_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/bolt"
	"github.com/sluicegw/sluice/backend/index"
)

// readBeside is a store of which somebody reads the other kind whenever things are read.
type readBeside struct{ *bolt.Store }

func (s readBeside) Range(ctx context.Context, r backend.Range) (backend.Page, error) {
	page, err := s.Store.Range(ctx, r)
	if r.Kind == "Thing" && err == nil {
		_, err = s.Store.Range(ctx, backend.Range{Kind: "Other", Limit: backend.MaxLimit})
	}
	return page, err
}

func TestKind_ADamagedResourceIsInTheIndexAsSuch(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sluice.db")
	s, err := bolt.Open(bolt.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{TB: t, store: s}
	damaged := backend.Key{Kind: "Other", Namespace: "ns", Name: "a"}
	f.put(damaged, "a")
	f.put(backend.Key{Kind: "Other", Namespace: "ns", Name: "b"}, "b")
	f.put(key("a"), "a")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	file, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = file.Update(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("resources")).Put(damaged.Append(nil), []byte{99, 2, 3})
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	s, err = bolt.Open(bolt.Config{Path: path})
	opened(t, s, err)
	f = start(t, readBeside{s}, index.Config{Wait: time.Minute})
	if _, k := f.view("Thing"); names(k, index.Run{}, false) != "a" {
		t.Errorf("it shows %q", names(k, index.Run{}, false))
	}
	v, _ := f.View(t.Context())
	k, served := v.Kind("Other")
	if !served {
		t.Fatal("a damaged resource keeps its kind out of the index")
	}
	if e := k.Get("ns", "a"); e == nil || !errors.Is(e.Err, backend.ErrUnreadable) {
		t.Errorf("the damaged one is %+v", e)
	}
	if e := k.Get("ns", "b"); e == nil || e.Err != nil || k.Unreadable(index.Run{}) != 1 {
		t.Errorf("the one beside it is %+v, %d are damaged", e, k.Unreadable(index.Run{}))
	}
	f.remove(damaged)
	if _, k := f.view("Other"); k.Get("ns", "a") != nil || k.Unreadable(index.Run{}) != 0 {
		t.Error("it is there after it was deleted")
	}
}
