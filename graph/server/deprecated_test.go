package server_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/sluicegw/sluice/graph/server"
)

// TestDeprecatedUses_AreInTheAccessLog: each line names what its operation uses that is deprecated, each once, at most
// twenty, and counts the rest.
func TestDeprecatedUses_AreInTheAccessLog(t *testing.T) {
	core, log := observer.New(zap.InfoLevel)
	c := newChangingForAll(t, server.Config{AccessLog: true, Logger: zap.New(core)})
	var fields, selection []string
	for i := range maxLogged + 5 {
		name := fmt.Sprintf("old%02d", i)
		fields = append(fields, "  "+name+": Int @deprecated(reason: \"no use\")\n")
		selection = append(selection, name)
	}
	c.replace(strings.Replace(deprecating, "  width: Int\n", "  width: Int\n"+strings.Join(fields, ""), 1))
	const create = `mutation($in: CreateShelfInput!) { createShelf(input: $in) { shelf { spec { old } } } }`
	for _, step := range []struct {
		name, document string
		variables      map[string]any
		names          []string
		more           any
	}{
		{"nothing", `{ shelves { nodes { spec { width } } } }`, nil, nil, nil},
		{"a field twice", `{ shelves { nodes { spec { old again: old } } } }`, nil, []string{"ShelfSpec.old"}, nil},
		{"a filter", `{ shelves(filter: {spec: {old: {eq: 1}}}) { totalCount } }`, nil, []string{"ShelfSpecFilter.old"}, nil},
		{"a variable", create, map[string]any{"in": map[string]any{
			"name": "a", "spec": map[string]any{"wood": "PINE", "parts": []any{map[string]any{"size": 1}}},
		}}, []string{"PartInput.size", "ShelfSpec.old", "Wood.PINE"}, nil},
		{"a manifest", `mutation($m: String!) { applyManifest(input: {manifest: $m}) { resource { ... on Shelf { spec { old } } } } }`,
			map[string]any{
				"m": `{"apiVersion": "example.org/v1", "kind": "Shelf", "metadata": {"name": "b"}, "spec": {"old": 1, "parts": [{"size": 1}]}}`,
			}, []string{"Part.size", "ShelfSpec.old"}, nil},
		{"twenty and five", `{ shelves { nodes { spec { ` + strings.Join(selection, " ") + ` } } } }`, nil, nil, int64(5)},
		{"an invalid document", `{ shelves { nodes { spec { old oak } } } }`, nil, nil, nil},
	} {
		log.TakeAll()
		c.post(t, step.document, step.variables)
		lines := log.FilterMessage("access").All()
		if len(lines) != 1 {
			t.Fatalf("%s: %d lines", step.name, len(lines))
		}
		line := lines[0].ContextMap()
		var names []string
		logged, _ := line["deprecated"].([]any)
		for _, name := range logged {
			names = append(names, name.(string))
		}
		if step.more != nil {
			step.names = nil
			for _, name := range selection[:maxLogged] {
				step.names = append(step.names, "ShelfSpec."+name)
			}
		}
		if !slices.Equal(names, step.names) || line["deprecatedMore"] != step.more {
			t.Errorf("%s: %q and %v more", step.name, names, line["deprecatedMore"])
		}
	}
}

// maxLogged is the most names in a line of the access log.
const maxLogged = 20
