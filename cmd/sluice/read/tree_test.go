package read_test

import "testing"

func TestTree_RefusesADepthAndADirection(t *testing.T) {
	refuse(t,
		refusal{"tree network a --depth 0", "depth: 0; 1 to 10 is accepted"},
		refusal{"tree network a --depth 11", "depth: 11; 1 to 10 is accepted"},
		refusal{"tree network a --direction up", "accepted are dependencies, dependents, both"},
		refusal{"tree network a b", "see sluice tree --help"},
	)
}
