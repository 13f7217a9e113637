package server_test

import (
	"strings"
	"testing"

	"github.com/sluicegw/sluice/graph/server"
)

func TestEnumLiteral_ErrorsListTheValues(t *testing.T) {
	shown, hidden := newEdge(t, plain, server.Config{}), newEdge(t, plain, server.Config{HideIntrospection: true})
	for value, want := range map[string]string{
		`TOML`: `Value \"TOML\" does not exist in \"ManifestFormat\" enum. ` +
			`Did you mean the enum value \"YAML\"? Its values are YAML, JSON."`,
		`"TOML"`: `ManifestFormat is accepted here, not this string; its values are YAML, JSON; ` +
			`enum values are written without quotes"`,
		`5`: `cannot represent non-enum value: 5. Its values are YAML, JSON."`,
	} {
		query := `{ networks { nodes { manifest(format: ` + value + `) } } }`
		if got := shown.post(t, query, nil); !strings.Contains(got, want) {
			t.Errorf("%s: %s lacks %s", value, got, want)
		}
		if got := hidden.post(t, query, nil); !strings.Contains(got, "ManifestFormat") || strings.Contains(got, "JSON") ||
			strings.Contains(got, "Did you mean") {
			t.Errorf("%s, hidden: %s", value, got)
		}
	}
}
