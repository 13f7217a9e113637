package server_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestVersion_KeptAnswersAreOfOneVersion asks the same document of a version and of the newest API in turns. The answer
// of one has what the other cannot name, and both are kept.
func TestVersion_KeptAnswersAreOfOneVersion(t *testing.T) {
	v := newVersioned(t)
	for i := range 60 {
		v.newest(fmt.Sprintf(`mutation { createThing(input: {name: "t-%d", spec: {price: %d, hiddenText: "hidden-text"}}) { thing { id } } }`, i, i%50))
	}
	const query = `{ things(first: 60) { totalCount nodes { id metadata { name revision } specJSON } } }`
	for round := range 5 {
		newest := v.newest(query)
		old := v.ask(v.newer, "/v1.0/graphql", query).Body.String()
		if n := strings.Count(newest, "hidden-text"); n != 60 {
			t.Fatalf("round %d: the newest API shows %d values: %.200s", round, n, newest)
		}
		if strings.Contains(old, "hidden") || !strings.Contains(old, `"totalCount":60`) {
			t.Fatalf("round %d: the version is answered %.300s", round, old)
		}
	}
}
