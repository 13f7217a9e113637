package service_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/body"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

// fixture is the world of widgets of package servicetest, with what only the tests of the service do in it.
type fixture struct{ *servicetest.Fixture }

func setup(t *testing.T) *fixture { return &fixture{servicetest.Setup(t)} }

// guarded is a running service that judges its callers. indexMemory is as of [service.Config].
func guarded(t *testing.T, store backend.Store, indexMemory int64, kinds ...descriptor.Kind) *fixture {
	t.Helper()
	return &fixture{servicetest.Guarded(t, store, indexMemory, kinds...)}
}

// house is the world of package servicetest with kinds that refer to each other.
type house struct{ *servicetest.House }

// openHouse opens a gateway whose kinds are those of servicetest.Building.
func openHouse(t *testing.T, store backend.Store) *house {
	t.Helper()
	return openHouseOf(t, store, servicetest.Building())
}

func openHouseOf(t *testing.T, store backend.Store, kinds []descriptor.Kind) *house {
	t.Helper()
	return &house{servicetest.OpenHouse(t, store, kinds)}
}

// onEachStore runs a test on each store, with the kinds of servicetest.Building.
func onEachStore(t *testing.T, test func(t *testing.T, h *house)) {
	t.Helper()
	onEach(t, servicetest.Building(), test)
}

func onEach(t *testing.T, kinds []descriptor.Kind, test func(t *testing.T, h *house)) {
	t.Helper()
	servicetest.OnStores(t, servicetest.EachStore(), func(t *testing.T, store backend.Store) {
		test(t, openHouseOf(t, store, kinds))
	})
}

// onCampus is servicetest.OnCampus.
func onCampus(t *testing.T, test func(t *testing.T, h *house)) {
	t.Helper()
	servicetest.OnCampus(t, func(t *testing.T, h *servicetest.House) { test(t, &house{h}) })
}

// patch changes a resource of the default namespace at its current revision.
func (h *house) patch(of, name, spec string, meta service.MetadataPatch) error {
	return h.Patch(servicetest.InDefault(of, name), spec, meta)
}

// report reports the status of a resource of the default namespace, as a controller does.
func (h *house) report(of, name, status string) []failure.Warning {
	h.T.Helper()
	return h.Report(servicetest.InDefault(of, name), status)
}

// bodyParts are the parts of a stored body, spec and status as they stand there.
type bodyParts struct {
	SubKind  string
	Version  string
	Metadata body.Metadata
	Spec     json.RawMessage
	Status   json.RawMessage
}

// decodeBody reads the body of a stored resource apart from the code that is tested.
func decodeBody(r *backend.Resource) (*bodyParts, error) {
	raw, err := backend.DecodeBody(r.Body)
	if err != nil {
		return nil, err
	}
	p := &bodyParts{}
	if err := json.Unmarshal(raw, p); err != nil {
		return nil, fmt.Errorf("body: %w: %w", backend.ErrUnreadable, err)
	}
	return p, nil
}
