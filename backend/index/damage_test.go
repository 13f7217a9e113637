package index_test

import (
	"context"
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

func TestADamagedResourceKeepsItsOwnKindAloneOutOfTheIndex(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sluice.db")
	s, err := bolt.Open(bolt.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{TB: t, store: s}
	damaged := backend.Key{Kind: "Other", Namespace: "ns", Name: "a"}
	f.put(damaged, "a")
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
	if _, served := v.Kind("Other"); served {
		t.Error("a kind is served of which a resource is damaged")
	}
}
