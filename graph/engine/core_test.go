package engine_test

import (
	"fmt"
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/graph/kinds"
)

// What the core resolves is written again when resources stand in it.
func TestObjectsOfTheCoreAreWrittenThoughAllTheirFieldsAreSkipped(t *testing.T) {
	catalogue, err := kinds.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	g := newGateway(t, catalogue, nil)
	created := g.do(`mutation { createProject(input: {name: "a", spec: {
		managementPolicy: MANAGED, cloudCredentialsRef: {cloudName: "c", secretName: "s"}, resource: {}
	}}) { project { id } } }`, nil)
	if created.Errors != nil {
		t.Fatal(created.Errors)
	}
	id := kind.GlobalID(backend.Key{Kind: "Project", Namespace: "default", Name: "a"})
	for _, c := range []struct{ name, selection, want string }{
		{"beside a resource", `beside: root { resourceId @skip(if: true) } root { resource { metadata { name } } }`, `{"beside":{},"root":{"resource":{"metadata":{"name":"a"}}}}`},
		{"around a resource", `root { resource @skip(if: true) { id } } again: root { resource { id @include(if: false) } }`, `{"root":{},"again":{"resource":{}}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := g.do(fmt.Sprintf(`{ dependencyTree(id: %q) { %s } }`, id, c.selection), nil)
			if want := `{"dependencyTree":` + c.want + `}`; string(got.Data) != want || got.Errors != nil {
				t.Errorf("got %s %v, want %s", got.Data, got.Errors, want)
			}
		})
	}
}
