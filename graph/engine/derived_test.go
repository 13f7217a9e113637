package engine_test

import (
	"testing"

	"github.com/sluicegw/sluice/graph/core"
)

// TestDerivedFields_HaveEntries holds that the tables have an entry for each field of the API, and no other.
func TestDerivedFields_HaveEntries(t *testing.T) {
	byHand := core.NewExecutableSchema(core.Config{}).Schema()
	for _, fault := range newGateway(t, shelves(t), nil).engine.CheckFields(byHand) {
		t.Error(fault)
	}
}
