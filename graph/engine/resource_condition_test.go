package engine_test

import (
	"encoding/json"
	"testing"
)

func TestAResourceOfAnyKindShowsItsConditions(t *testing.T) {
	g := networked(t)
	g.create("Network", "n", map[string]any{})
	const available = `{"type":"Available","status":"True","reason":"Success","message":"The resource is available","observedGeneration":1,"lastTransitionTime":"2026-01-02T03:04:05.678Z"}`
	const progressing = `{"type":"Progressing","status":"False","reason":"Success","message":"The resource is up to date","observedGeneration":1,"lastTransitionTime":"2026-01-02T03:04:05.678Z"}`
	const fields = `conditions { type status reason message observedGeneration lastTransitionTime }`
	g.wants(`{ network(name: "n") { `+fields+` status { `+fields+` } } resource(kind: "net", name: "n") { `+fields+` } }`,
		`{"network":{"conditions":[`+available+`,`+progressing+`],"status":{"conditions":[`+available+`,`+progressing+`]}},"resource":{"conditions":[`+available+`,`+progressing+`]}}`)
	g.wants(`mutation { createSecret(input: {name: "s", spec: {}}) { secret { conditions { type } } } }`, `{"createSecret":{"secret":{"conditions":null}}}`)
	g.put("Subnet", "never", `{"version":"v1alpha1","metadata":{"generation":1},"spec":{"cloudCredentialsRef":{"cloudName":"c","secretName":"s"}}}`)
	g.wants(`{ subnet(name: "never") { conditions { type } } }`, `{"subnet":{"conditions":[]}}`)
	g.wants(`{ networks(filter: {conditions: [{type: "Available", status: {ne: "False"}, reason: {startsWith: "Succ"}}]}) { nodes { metadata { name } } } }`, `{"networks":{"nodes":[{"metadata":{"name":"n"}}]}}`)
	g.wants(`{ networks(filter: {conditions: [{type: "Available", reason: {eq: "Failed"}}]}) { nodes { id } } }`, `{"networks":{"nodes":[]}}`)
	got := g.do(`{ networks(filter: {conditions: [{type: "Available", status: {}}]}) { nodes { id } } }`, nil)
	if field := got.Errors[0].Extensions["field"]; string(got.Data) != `{"networks":null}` || field != "filter.conditions[0].status" {
		t.Errorf("%s %v", got.Data, field)
	}
	// A type and a status are in every condition.
	for _, condition := range []any{map[string]any{"type": "Ready"}, map[string]any{"status": "True"}, map[string]any{"type": nil, "status": "True"}} {
		raw, _ := json.Marshal(condition)
		_, errs := g.prepare(`mutation($c: ConditionInput!) { updateNetworkStatus(input: {name: "n", expectedRevision: "1-1", status: {conditions: [$c]}}) { dryRun } }`, map[string]any{"c": condition})
		if len(errs) == 0 {
			t.Errorf("%s is accepted", raw)
		}
	}
}
