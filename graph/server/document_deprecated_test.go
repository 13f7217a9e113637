package server_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/graph/server"
)

const deprecating = `type Shelf @resource(plural: "shelves", group: "example.org", version: "v1", scope: NAMESPACED) { spec: ShelfSpec! }
type ShelfSpec {
  width: Int
  old: Int @deprecated(reason: "use width") @filterable
  wood: Wood
  parts: [Part!] @list(type: ATOMIC) @constraint(maxItems: 9)
}
type Part { size: Int @deprecated(reason: "no use") }
enum Wood { OAK PINE @deprecated(reason: "is gone") }
`

// TestDocument_UsesOfWhatIsDeprecatedAreCounted: each operation that is executed counts once for each deprecated part of
// the schema, in the document, in its variables and in a manifest, and no label comes from a client.
func TestDocument_UsesOfWhatIsDeprecatedAreCounted(t *testing.T) {
	c := newChangingForAll(t, server.Config{})
	c.replace(deprecating)
	const create = `mutation($in: CreateShelfInput!) { createShelf(input: $in) { shelf { id } } }`
	counted := map[string]string{}
	for _, step := range []struct {
		name, document string
		variables      map[string]any
		counts         string
	}{
		{"nothing", `{ shelves { nodes { spec { width } } } }`, nil, ""},
		{"a field twice", `{ shelves { nodes { spec { old again: old } } } }`, nil, `ShelfSpec.old`},
		{"from the cache", `{ shelves { nodes { spec { old again: old } } } }`, nil, `ShelfSpec.old`},
		{"a filter", `{ shelves(filter: {spec: {old: {eq: 1}}}) { totalCount } }`, nil, `ShelfSpecFilter.old`},
		{"a variable", create, map[string]any{"in": map[string]any{"name": "a", "spec": map[string]any{
			"old": 1, "wood": "PINE", "parts": []any{map[string]any{"size": 1}, map[string]any{"size": 2}},
		}}}, `PartInput.size ShelfSpecInput.old Wood.PINE`},
		{"a variable without", create, map[string]any{"in": map[string]any{"name": "b", "spec": map[string]any{"wood": "OAK"}}}, ""},
		{"one that is refused", create, map[string]any{"in": map[string]any{"name": 1, "spec": map[string]any{"old": 1}}}, ""},
		{"an invalid document", `{ shelves { nodes { spec { old oak } } } }`, nil, ""},
		{"a manifest", `mutation($m: String!) { applyManifest(input: {manifest: $m}) { outcome } }`, map[string]any{
			"m": `{"apiVersion": "example.org/v1", "kind": "Shelf", "metadata": {"name": "c"}, "spec": {"old": 1, "parts": [{"size": 1}, {"size": 2}]}}`,
		}, `Part.size ShelfSpec.old`},
	} {
		c.post(t, step.document, step.variables)
		now := map[string]string{}
		var grown []string
		for line := range strings.Lines(c.at(http.MethodGet, "/metrics").Body.String()) {
			field, value, ok := strings.Cut(strings.TrimPrefix(line, `sluice_deprecated_uses_total{field="`), `"} `)
			if !ok || strings.HasPrefix(line, "#") || !strings.HasPrefix(line, "sluice_deprecated") {
				continue
			}
			now[field] = value
			if counted[field] != value {
				grown = append(grown, field)
			}
		}
		counted = now
		slices.Sort(grown)
		if got := strings.Join(grown, " "); got != step.counts {
			t.Errorf("%s: counts %q, want %q", step.name, got, step.counts)
		}
	}
	if counted["ShelfSpec.old"] != "3\n" {
		t.Errorf("ShelfSpec.old: %s", counted["ShelfSpec.old"])
	}
}
