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

// Stores open empty stores, which are closed when the test ends, by the names of tests.
type Stores map[string]func(t *testing.T) backend.Store

// EachStore returns one store of each driver, of one shard.
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

// OpenRedis opens a store on a new server, which is closed when the test ends. If there are four shards, the
// namespaces of [Floors] lie in all of these.
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

// Opened returns a store that was opened, which is closed when the test ends.
func Opened[S interface{ Close() error }](t testing.TB, store S, err error) S {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}
