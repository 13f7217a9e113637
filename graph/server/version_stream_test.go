package server_test

import (
	"strings"
	"testing"

	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/graph/server"
)

// TestVersion_StreamsOfEveryKindEndWhereTheirPathHasANewKind: a new kind of the newest API ends no stream of a version,
// and a release ends those of the major, which would miss its changes.
func TestVersion_StreamsOfEveryKindEndWhereTheirPathHasANewKind(t *testing.T) {
	const more = `type Box @resource(plural: "boxes", group: "example.org", version: "v1", scope: NAMESPACED) { spec: BoxSpec! }
type BoxSpec { size: Int }
`
	const every = `subscription($after: String) { event: resourceChanges(after: $after) { cursor resource { kind } } }`
	c := newChangingForAll(t, server.Config{})
	serve := func(sdl string, versions ...string) {
		t.Helper()
		catalogue := c.withVersions(sdl, "", versions...)
		g, err := c.server.Prepare(catalogue)
		if err != nil {
			t.Fatal(err)
		}
		c.server.Replace(g)
		c.run(catalogue.API.Service)
	}
	serve(narrow, narrow)
	streams := map[string]*wire{}
	for _, path := range []string{"/v1.0/graphql", "/v1/graphql", "/graphql"} {
		streams[path] = c.dialAt(path)
		streams[path].begin("1", every, nil)
		streams[path].read() // IN_SYNC
	}
	ended := func(path string) map[string]any {
		t.Helper()
		end := streams[path].read().ending(t)[0].Extensions
		if end.Code != string(failure.CodeCatalogueChanged) || end.Cursor == "" {
			t.Fatalf("%s ended with %v", path, end)
		}
		return map[string]any{"after": end.Cursor}
	}
	serve(narrow+more, narrow)
	ended("/graphql")
	c.put("a", 1)
	for _, path := range []string{"/v1.0/graphql", "/v1/graphql"} {
		if m := streams[path].read(); !strings.Contains(string(m.Payload), `"kind":"Shelf"`) {
			t.Errorf("%s after a new kind: %s %s", path, m.Type, m.Payload)
		}
	}
	serve(narrow+more, narrow, narrow+more)
	if got := c.ask(c.Handler, "/graphql", `mutation { createBox(input: {name: "b", spec: {}}) { box { id } } }`).Body.String(); strings.Contains(got, "errors") {
		t.Fatal(got)
	}
	streams["/v1/graphql"].begin("2", every, ended("/v1/graphql"))
	if m := streams["/v1/graphql"].read(); !strings.Contains(string(m.Payload), `"kind":"Box"`) {
		t.Errorf("after the release: %s %s", m.Type, m.Payload)
	}
}
