package query_test

import (
	"testing"

	"github.com/sluicegw/sluice/backend"
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

// onEachStore runs a test on each store, with the kinds of servicetest.Building.
func onEachStore(t *testing.T, test func(t *testing.T, h *servicetest.House)) {
	t.Helper()
	servicetest.OnStores(t, servicetest.EachStore(), func(t *testing.T, store backend.Store) {
		test(t, servicetest.OpenHouse(t, store, servicetest.Building()))
	})
}
