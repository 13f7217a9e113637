package engine_test

import (
	"strings"
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/kind"
)

func TestABadIDIsAnErrorAtItsIndex(t *testing.T) {
	g := newGateway(t, shelves(t), nil)
	if got := g.do(`mutation { createService(input: {name: "a", spec: {}}) { warnings { message } } }`, nil); len(got.Errors) > 0 {
		t.Fatal(got.Errors)
	}
	good := kind.GlobalID(backend.Key{Kind: "Service", Name: "a"})
	gone := kind.GlobalID(backend.Key{Kind: "Service", Name: "gone"})
	unknown := kind.GlobalID(backend.Key{Kind: "Nothing", Name: "a"})
	got := g.do(`query($ids: [ID!]!) { nodes(ids: $ids) { id } }`, map[string]any{"ids": []any{good, "rubbish", gone, unknown, good}})
	want := `{"nodes":[{"id":"` + good + `"},null,null,null,{"id":"` + good + `"}]}`
	var paths []string
	for _, e := range got.Errors {
		paths = append(paths, e.Path.String())
	}
	if string(got.Data) != want || strings.Join(paths, " ") != "nodes[1] nodes[3]" {
		t.Errorf("got  %s\nwant %s\nerrors at %v", got.Data, want, paths)
	}
}
