package servicetest

import (
	"path/filepath"
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/bolt"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service"
)

// Stores returns an open store in memory and one in a file, by the names of their drivers.
func Stores(t *testing.T) map[string]backend.Store {
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

// Gateways returns services over one store.
func Gateways(t *testing.T, store backend.Store, n int) []*service.Service {
	t.Helper()
	out := make([]*service.Service, n)
	for i := range out {
		svc, err := service.New(service.Config{Kinds: []descriptor.Kind{Widget(), Cluster()}, Store: store})
		if err != nil {
			t.Fatal(err)
		}
		out[i] = svc
	}
	return out
}
