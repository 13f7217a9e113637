package server_test

import (
	"testing"

	"github.com/sluicegw/sluice/graph/server"
)

func TestASummaryIsWrittenAsItIsSelected(t *testing.T) {
	e := newEdge(t, plain, server.Config{})
	for i, name := range []string{"a", "b", "c"} {
		e.post(t, create, map[string]any{"name": name, "mtu": 1500 + i/2})
	}
	for query, want := range map[string]string{
		`{ networksSummary(by: ["spec.resource.mtu"]) { groups { n: count keys { value path } } } }`: `{"data":{"networksSummary":{"groups":[` +
			`{"n":2,"keys":[{"value":"1500","path":"spec.resource.mtu"}]},{"n":1,"keys":[{"value":"1501","path":"spec.resource.mtu"}]}]}}}`,
		`{ networksSummary(conditions: ["Available", "Nobody"]) { __typename groups { keys { value } } } }`: `{"data":{"networksSummary":{"__typename":"ResourceSummary","groups":[{"keys":[{"value":"False"},{"value":null}]}]}}}`,
		`{ networksSummary { groups { count keys { path } } } }`:                                            `{"data":{"networksSummary":{"groups":[{"count":3,"keys":[]}]}}}`,
		`{ networksSummary(namespace: "empty") { groups { count } } }`:                                      `{"data":{"networksSummary":{"groups":[]}}}`,
	} {
		if got := e.post(t, query, nil); got != want {
			t.Errorf("%s\n%s\nwant\n%s", query, got, want)
		}
	}
}

func TestAPageOfNamespacesIsWrittenAsItIsSelected(t *testing.T) {
	e := newEdge(t, plain, server.Config{})
	e.post(t, create, map[string]any{"name": "a", "mtu": 1500})
	for query, want := range map[string]string{
		`{ namespaces { nodes { name counts { kind count } } totalCount } }`:                                                        `{"data":{"namespaces":{"nodes":[{"name":"default","counts":[{"kind":"Network","count":1}]}],"totalCount":1}}}`,
		`{ namespaces(first: 0) { edges { node { name } } pageInfo { hasNextPage hasPreviousPage startCursor endCursor } } }`:       `{"data":{"namespaces":{"edges":[],"pageInfo":{"hasNextPage":true,"hasPreviousPage":false,"startCursor":null,"endCursor":null}}}}`,
		`{ namespaces(first: 1, after: "AW5hbWVhYQ") { edges { cursor node { name } } pageInfo { hasPreviousPage startCursor } } }`: `{"data":{"namespaces":{"edges":[{"cursor":"AW5hbWVkZWZhdWx0","node":{"name":"default"}}],"pageInfo":{"hasPreviousPage":true,"startCursor":"AW5hbWVkZWZhdWx0"}}}}`,
	} {
		if got := e.post(t, query, nil); got != want {
			t.Errorf("%s\n%s\nwant\n%s", query, got, want)
		}
	}
}
