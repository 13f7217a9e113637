package engine_test

import (
	"testing"

	"github.com/sluicegw/sluice/graph/engine/enginetest"
)

// TestDerivedFields_HaveEntries holds that the tables have an entry for each field of the API, and no other.
func TestDerivedFields_HaveEntries(t *testing.T) {
	for _, fault := range newGateway(t, shelves(t), nil).engine.CheckFields(enginetest.ByHand()) {
		t.Error(fault)
	}
}
