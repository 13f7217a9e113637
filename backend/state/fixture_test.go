package state

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/bolt"
	"github.com/sluicegw/sluice/backend/catalogue"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/keyring"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/redis"
	"github.com/sluicegw/sluice/internal/redistest"
)

// planted is a secret that no sealed file has.
const planted = "planted-secret"

// openMemory opens an empty store in memory.
func openMemory(t testing.TB) backend.Store {
	t.Helper()
	store, err := memory.Open(memory.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

// openBolt opens an empty embedded store.
func openBolt(t testing.TB) backend.Store {
	t.Helper()
	store, err := bolt.Open(bolt.Config{Path: filepath.Join(t.TempDir(), "store.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

// openRedis opens an empty store on Redis with a number of shards.
func openRedis(t testing.TB, shards int) backend.Store {
	t.Helper()
	store, err := redis.Open(t.Context(), redis.Config{
		URL: servers.Server(t).URL(), Prefix: redistest.Prefix(), Shards: shards,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

// testLease is shorter than the default: with several shards, the end of a bootstrap waits for it.
const testLease = 300 * time.Millisecond

// ring returns a keyring whose first key has an id.
func ring(t testing.TB, ids ...string) *keyring.Keyring {
	t.Helper()
	var keys []keyring.Key
	for _, id := range ids {
		keys = append(keys, keyring.Key{ID: id, Secret: [keyring.KeyBytes]byte{id[0]}})
	}
	out, err := keyring.New(keys...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// apply sends actions in one batch.
func apply(t testing.TB, store backend.Store, actions ...backend.Action) {
	t.Helper()
	if _, err := store.Apply(t.Context(), batchOf(store, actions...)); err != nil {
		t.Fatal(err)
	}
}

func batchOf(store backend.Store, actions ...backend.Action) backend.Batch {
	return backend.Batch{
		RequestID: newID(), Deadline: backend.ClockOf(store)().Add(time.Minute), Actions: actions,
	}
}

// put is an action that stores a body.
func put(key backend.Key, body string) backend.Action {
	return backend.Action{
		Key: key, Op: backend.OpPut,
		Put: backend.Put{UID: "uid-" + key.Name, Caller: true, Body: backend.EncodeBody([]byte(body))},
	}
}

// sealedPut is an action that stores sensitive values of a resource.
func sealedPut(t testing.TB, keys *keyring.Keyring, of backend.Key, body string) backend.Action {
	t.Helper()
	a := put(of.Sensitive(), body)
	var err error
	if a.Put.Body, err = keys.Seal(a.Key, a.Put.UID, a.Put.Body); err != nil {
		t.Fatal(err)
	}
	return a
}

func key(kind, name string) backend.Key {
	return backend.Key{Kind: kind, Namespace: "default", Name: name}
}

// kinds are a catalogue: a sensitive kind, one with a write-only field inside, and one without.
func kinds() []descriptor.Kind {
	text := func(name string, writeOnly bool) descriptor.Field {
		return descriptor.Field{Name: name, Type: descriptor.TypeString, WriteOnly: writeOnly}
	}
	kind := func(name string, fields ...descriptor.Field) descriptor.Kind {
		return descriptor.Kind{Name: name, Scope: descriptor.Namespaced, Spec: &descriptor.Shape{Fields: fields}}
	}
	secret := kind("Secret", text("data", true))
	secret.Sensitive = true
	return []descriptor.Kind{kind("Net", text("mtu", false)), kind("Mailbox", text("user", false), text("password", true)), secret}
}

// acceptKinds records the catalogue in a store.
func acceptKinds(t testing.TB, store backend.Store) {
	t.Helper()
	err := catalogue.Gate{Store: store}.Accept(t.Context(), catalogue.Candidate{Kinds: kinds()})
	if err != nil {
		t.Fatal(err)
	}
}

// furnish puts a record of each sort into a store.
func furnish(t testing.TB, store backend.Store, keys *keyring.Keyring) {
	t.Helper()
	acceptKinds(t, store)
	long := time.Now().Add(time.Hour).UTC().Truncate(time.Millisecond)
	plain := put(key("Net", "a"), `{"spec":{"mtu":"1"},"metadata":{"labels":{"<&>":"é"}}}`)
	finalized := put(key("Net", "finalized"), `{"spec":{}}`)
	finalized.Put.Finalizers = new(2)
	finalized.Put.Deleting = true
	finalized.Put.ExpiresAt = long
	bound := put(key("Net", "bound"), `{"spec":{}}`)
	bound.Put.Declared = "d1"
	bound.Put.Refs = []backend.Ref{
		{Key: key("Net", "a"), Bound: true}, {Key: key("Net", "none")}, {Key: backend.Key{Kind: "Zone", Name: "z"}},
	}
	odd := put(key("Net", "odd"), `{}`)
	odd.Put.Body = []byte("j{\n}")
	apply(t, store, plain, finalized, bound, odd)
	other := put(backend.Key{Kind: "Net", Namespace: "other", Name: "a"}, `{"spec":{}}`)
	apply(t, store, other)
	apply(t, store, put(backend.Key{Kind: "Zone", Name: "z"}, `{"spec":{}}`))
	apply(t, store, put(key("Secret", "s"), `{"spec":{}}`), sealedPut(t, keys, key("Secret", "s"), `{"data":"`+planted+`"}`))
	apply(t, store, put(key("Mailbox", "m"), `{"spec":{"user":"u","password":"`+planted+`"}}`))
	apply(t, store, put(backend.Key{Kind: controllersKind, Name: "kinds"}, `{"format":1,"kinds":["Net"]}`))
	apply(t, store, put(backend.Key{Kind: reconcileKind, Name: "shard-0"}, `{}`))
	gone := put(key("Net", "gone"), `{}`)
	gone.Put.ExpiresAt = time.Now().Add(-time.Hour)
	apply(t, store, gone)
}

// export returns a file of a store.
func export(t testing.TB, store backend.Store, keys *keyring.Keyring, secrets Secrecy) []byte {
	t.Helper()
	var out bytes.Buffer
	if _, err := Export(t.Context(), ExportConfig{Store: store, Keys: keys, Secrets: secrets}, &out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// opener returns the function that opens a file.
func opener(file []byte) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(file)), nil }
}

// fill fills a store with a file.
func fill(ctx context.Context, store backend.Store, keys *keyring.Keyring, file []byte) error {
	_, err := Bootstrap(ctx, BootstrapConfig{Store: store, Open: opener(file), Keys: keys, lease: testLease})
	return err
}

// unzipped returns the lines of a file.
func unzipped(t testing.TB, file []byte) []string {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// contents returns what a file has of each key: a line without revisions, and with what is sealed in plain form.
func contents(t testing.TB, file []byte, keys *keyring.Keyring) map[string]string {
	t.Helper()
	r, err := NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for {
		l, err := r.Next()
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		name := l.Resource.Key.String()
		if l.Deleted {
			delete(out, name)
			continue
		}
		one := *l.Resource
		one.Revision = backend.Revision{}
		if verdictOf(one.Kind) == movedLast {
			one.CreatedAt, one.UpdatedAt = time.Time{}, time.Time{}
		}
		if one.Body, err = keys.Open(one.Key, one.UID, one.Body); err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(one)
		if err != nil {
			t.Fatal(err)
		}
		out[name] = fmt.Sprintf("%s %s", text, one.Body)
	}
}

// same fails the test unless two files have the same contents.
func same(t testing.TB, got, want []byte, keys *keyring.Keyring) {
	t.Helper()
	if d := cmp.Diff(contents(t, want, keys), contents(t, got, keys)); d != "" {
		t.Errorf("want -, got +:\n%s", d)
	}
}
