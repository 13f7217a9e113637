package servicetest

import (
	"path/filepath"
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/bolt"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/redis"
	"github.com/sluicegw/sluice/internal/redistest"
)

// Stores maps the name of a test to a function that opens an empty store. The store is closed when the test ends.
type Stores map[string]func(t *testing.T) backend.Store

// EachStore returns a store of each driver. Each store has one shard.
func EachStore() Stores {
	stores := Embedded()
	stores["redis"] = func(t *testing.T) backend.Store { return OpenRedis(t, 1) }
	return stores
}

// Embedded returns the stores that need no server.
func Embedded() Stores {
	return Stores{
		"memory": func(t *testing.T) backend.Store { return OpenMemory(t) },
		"bolt":   func(t *testing.T) backend.Store { return OpenBolt(t) },
	}
}

// OpenMemory opens a store in memory, which is closed when the test ends.
func OpenMemory(t *testing.T) *memory.Store {
	t.Helper()
	store, err := memory.Open(memory.Config{})
	return Opened(t, store, err)
}

// OpenBolt opens a store in a file, which is closed when the test ends.
func OpenBolt(t *testing.T) *bolt.Store {
	t.Helper()
	store, err := bolt.Open(bolt.Config{Path: filepath.Join(t.TempDir(), "s.db")})
	return Opened(t, store, err)
}

// OpenRedis opens a store on a new server, which is stopped when the test ends. In a store with four shards, each shard
// has some of the namespaces of [Floors].
func OpenRedis(t *testing.T, shards int) *redis.Store {
	t.Helper()
	store, err := redis.Open(t.Context(), redis.Config{URL: redistest.Start(t).URL(), Prefix: "t", Shards: shards})
	Opened(t, store, err)
	if shards == 4 {
		seen := map[int]bool{}
		for _, floor := range Floors() {
			seen[store.Shard(floor)] = true
		}
		if len(seen) != shards {
			t.Fatalf("the floors lie in shards %v", seen)
		}
	}
	return store
}

// Opened returns a store that was just opened, and closes it when the test ends. It fails the test if err is not nil.
func Opened[S interface{ Close() error }](t testing.TB, store S, err error) S {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}
