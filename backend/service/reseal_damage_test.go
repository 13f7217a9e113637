package service_test

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/bolt"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

func TestReseal_RecordsThatDoNotDecodeAreCountedAsLeft(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sluice.db")
	core, logs := observer.New(zap.DebugLevel)
	gateway := func() (*fixture, *bolt.Store) {
		store, err := bolt.Open(bolt.Config{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		s, err := service.New(service.Config{Kinds: []descriptor.Kind{sensitiveSafe()}, Store: store, Keys: keysOf(t, "a"), Logger: zap.New(core)})
		if err != nil {
			t.Fatal(err)
		}
		return &fixture{&servicetest.Fixture{Service: s, T: t}}, store
	}
	f, store := gateway()
	f.upsertSafe(fullSafe)
	for _, name := range []string{"b", "c"} {
		id := kind.Identity{Kind: "Safe", Name: name}
		if _, err := f.Writer.Upsert(t.Context(), service.UpsertRequest{Identity: id, Spec: json.RawMessage(`{"owner":"ada","pin":"planted"}`)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	file, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = file.Update(func(tx *bbolt.Tx) error {
		k := backend.Key{Kind: "Safe", Namespace: safeKey().Namespace, Name: "b"}
		return tx.Bucket([]byte("resources")).Put(k.Sensitive().Append(nil), []byte{99, 2, 3})
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	f, store = gateway()
	const done = "sensitive values are encrypted"
	f.runUntil(logs, done)
	if line := logs.FilterMessage(done).All()[0].ContextMap(); line["leftAsTheyAre"] != int64(1) || line["encryptedNow"] != int64(0) {
		t.Errorf("%v", line)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
}
