package engine_test

import (
	"testing"

	"github.com/sluicegw/sluice/graph/kinds"
)

func TestListsOfReferencesOfOneLevelAreToldApart(t *testing.T) {
	catalogue, err := kinds.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	g := newGateway(t, catalogue, nil)
	g.put("Project", "p", spec(map[string]any{}))
	for _, name := range []string{"a", "b"} {
		g.put("SecurityGroup", name, spec(map[string]any{"projectRef": "p"}))
	}
	for name, groups := range map[string][]string{"p0": {"a", "b"}, "p1": {"a\x00b"}, "p2": {}, "p3": {""}, "p4": {"b", "a", "b"}} {
		g.put("Port", name, spec(map[string]any{"networkRef": "n", "securityGroupRefs": groups}))
	}
	got := g.do(`{ ports { nodes { metadata { name } securityGroups { nodes { metadata { name } } totalCount } } } }`, nil)
	const want = `{"ports":{"nodes":[` +
		`{"metadata":{"name":"p0"},"securityGroups":{"nodes":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}],"totalCount":2}},` +
		`{"metadata":{"name":"p1"},"securityGroups":{"nodes":[],"totalCount":0}},` +
		`{"metadata":{"name":"p2"},"securityGroups":{"nodes":[],"totalCount":0}},` +
		`{"metadata":{"name":"p3"},"securityGroups":{"nodes":[],"totalCount":0}},` +
		`{"metadata":{"name":"p4"},"securityGroups":{"nodes":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}],"totalCount":2}}]}}`
	if string(got.Data) != want || len(got.Errors) > 0 {
		t.Errorf("%v\ngot  %s\nwant %s", got.Errors, got.Data, want)
	}
}
