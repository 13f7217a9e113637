package await

import (
	"encoding/json"
	"testing"

	"github.com/sluicegw/sluice/graph/client"
)

func TestAConditionOfAnEarlierGenerationDoesNotCount(t *testing.T) {
	for status, want := range map[string]bool{
		`{"conditions": [{"type": "Available", "status": "True"}]}`:                          true,
		`{"conditions": [{"type": "Available", "status": "True", "observedGeneration": 2}]}`: true,
		`{"conditions": [{"type": "Available", "status": "True", "observedGeneration": 1}]}`: false,
		`{"conditions": [{"type": "Available", "status": "true"}]}`:                          false,
	} {
		g, err := ParseGoal("condition=Available")
		if err != nil {
			t.Fatal(err)
		}
		r := &client.Resource{Metadata: client.Metadata{Generation: 2}, Status: json.RawMessage(status)}
		if got, is, err := g.reached(client.Kind{}, r); got != want || err != nil {
			t.Errorf("%s: %v (%s) %v", status, got, is, err)
		}
	}
	if _, err := ParseGoal("condition=Available="); err == nil {
		t.Error("an empty status is accepted")
	}
}
