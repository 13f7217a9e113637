package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// TestAClientThatKnowsNoKindWritesByIDs as a program does that treats all kinds alike.
func TestAClientThatKnowsNoKindWritesByIDs(t *testing.T) {
	g := networked(t)
	if got := g.do(`mutation { createNetwork(input: {name: "net", spec: {cloudCredentialsRef: {secretName: "cloud", cloudName: "region-one"}, resource: {}}}) { dryRun } }`, nil); len(got.Errors) > 0 {
		t.Fatal(got.Errors)
	}
	id := kind.GlobalID(backend.Key{Kind: "Network", Namespace: "default", Name: "net"})
	patch := func(more string, variables map[string]any) string {
		t.Helper()
		variables["id"], variables["revision"] = id, g.revision("Network", "net")
		got := g.do(`mutation($id: ID!, $revision: String!, $spec: JSON) { patchResource(input: {id: $id, expectedRevision: $revision, specJSON: $spec`+more+`}) { resource { ... on Network { spec { resource { mtu tags } } metadata { labels { key } } } } } }`, variables)
		return fmt.Sprint(string(got.Data), got.Errors)
	}
	spec := map[string]any{"resource": map[string]any{"mtu": 1400, "tags": []any{"a"}}}
	if got := patch(`, labels: [{key: "a", value: "1"}]`, map[string]any{"spec": spec}); got != `{"patchResource":{"resource":{"spec":{"resource":{"mtu":1400,"tags":["a"]}},"metadata":{"labels":[{"key":"a"}]}}}}` {
		t.Error(got)
	}
	got := g.do(fmt.Sprintf(`mutation { patchResource(input: {id: %q, expectedRevision: %q, specJSON: {resource: {mtu: 1300, tags: null}}}) { resource { specJSON } } }`, id, g.revision("Network", "net")), nil)
	if text := string(got.Data); !strings.Contains(text, `"mtu":1300`) || strings.Contains(text, "tags") {
		t.Errorf("a literal: %s %v", text, got.Errors)
	}
	for spec, want := range map[string]string{
		`{resource: {mtu: 1}}`:   "input.specJSON.resource.mtu: ",
		`{resource: {mtu: "x"}}`: "input.specJSON.resource.mtu: ",
		`{nothing: {a: [1]}}`:    "input.specJSON.nothing: ",
		`"text"`:                 "input.specJSON: ",
		`null`:                   "input.specJSON: ",
	} {
		if got := refusal(t, g.do(fmt.Sprintf(`mutation { patchResource(input: {id: %q, expectedRevision: %q, specJSON: %s}) { dryRun } }`, id, g.revision("Network", "net"), spec), nil)); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s", spec, got)
		}
	}
	got = g.do(fmt.Sprintf(`mutation { updateResourceStatus(input: {id: %q, expectedRevision: %q, statusJSON: {id: "x", conditions: [{type: "A", status: "True"}]}}) { resource { conditions { type } } } }`, id, g.revision("Network", "net")), nil)
	if text := string(got.Data); !strings.Contains(text, `{"type":"A"}`) {
		t.Errorf("%s %v", text, got.Errors)
	}
	if got := refusal(t, g.do(fmt.Sprintf(`mutation { updateResourceStatus(input: {id: %q, expectedRevision: %q, statusJSON: {conditions: 1}}) { dryRun } }`, id, g.revision("Network", "net")), nil)); !strings.HasPrefix(got, "input.statusJSON.conditions: ") {
		t.Error(got)
	}
	got = g.do(`mutation { patchNetworkStatus(input: {name: "net", status: {conditions: [{type: "B", status: "True"}]}}) { network { conditions { type } } } }`, nil)
	if text := string(got.Data); !strings.Contains(text, `{"type":"A"}`) || !strings.Contains(text, `{"type":"B"}`) {
		t.Errorf("%s %v", text, got.Errors)
	}
	got = g.do(fmt.Sprintf(`mutation { deleteResource(input: {id: %q}) { state deletedResourceId blockedBy { totalCount } resource { metadata { name } } } }`, id), nil)
	if want := fmt.Sprintf(`{"deleteResource":{"state":"DELETED","deletedResourceId":%q,"blockedBy":{"totalCount":0},"resource":{"metadata":{"name":"net"}}}}`, id); string(got.Data) != want {
		t.Errorf("%s %v, want %s", got.Data, got.Errors, want)
	}
	if got := refusal(t, g.do(`mutation { deleteResource(input: {id: "x"}) { state } }`, nil)); !strings.HasPrefix(got, "input.id: ") {
		t.Error(got)
	}
}
