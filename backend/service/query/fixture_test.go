package query_test

import (
	"path/filepath"
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/bolt"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

// fixture is the world of package servicetest, with what only the tests of queries do in it.
type fixture struct{ *servicetest.Fixture }

func setup(t *testing.T) *fixture { return &fixture{servicetest.Setup(t)} }

func setupOn(t *testing.T, cfg memory.Config) *fixture {
	return &fixture{servicetest.SetupOn(t, cfg)}
}

func setupIndexed(t *testing.T) *fixture { return &fixture{servicetest.SetupIndexed(t)} }

// guarded is a running service that judges its callers. indexMemory is as of [service.Config].
func guarded(t *testing.T, store backend.Store, indexMemory int64, kinds ...descriptor.Kind) *fixture {
	t.Helper()
	return &fixture{servicetest.Guarded(t, store, indexMemory, kinds...)}
}

// stores are a store in memory and one in a file. Package servicetest may not import bolt.
func stores(t *testing.T) map[string]backend.Store {
	t.Helper()
	m, err := memory.Open(memory.Config{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := bolt.Open(bolt.Config{Path: filepath.Join(t.TempDir(), "s.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = m.Close()
		_ = b.Close()
	})
	return map[string]backend.Store{"memory": m, "bolt": b}
}
