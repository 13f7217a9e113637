package server_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/graph/server"
)

// TestAVariableIsRefusedIfItsTypeHasNoSuchValue before anything is executed.
func TestAVariableIsRefusedIfItsTypeHasNoSuchValue(t *testing.T) {
	e := newEdge(t, plain, server.Config{})
	const (
		page   = `query($v: Int) { networks(first: $v) { nodes { id } } }`
		name   = `query($v: String!) { network(name: $v) { id } }`
		id     = `query($v: ID!) { node(id: $v) { id } }`
		some   = `query($v: [ID!]!) { nodes(ids: $v) { id } }`
		ints   = `query($v: NetworkFilter) { networks(filter: $v) { nodes { id } } }`
		filter = `query($v: NetworkFilter) { networks(filter: $v) { nodes { id } } }`
		format = `query($v: ManifestFormat) { networks { nodes { manifest(format: $v) } } }`
		since  = `query($v: Time) { networks(filter: {createdAt: {gt: $v}}) { nodes { id } } }`
		dry    = `mutation($v: Boolean) { applyManifest(input: {manifest: "", dryRun: $v}) { outcome } }`
	)
	for _, c := range []struct{ name, query, value, at string }{
		{"a string for an Int", page, `"1000"`, "v"},
		{"a fraction for an Int", page, `1.5`, "v"},
		{"an Int of 33 bits", page, `4294967296`, "v"},
		{"a Boolean for an Int", page, `true`, "v"},
		{"a list of an Int", page, `[1]`, "v"},
		{"a number for a String", name, `7`, "v"},
		{"null for a String", name, `null`, "v"},
		{"an object for a String", name, `{}`, "v"},
		{"a fraction for an ID", id, `1.5`, "v"},
		{"a Boolean for an ID", id, `true`, "v"},
		{"null in a list", some, `["a", null]`, "v.1"},
		{"a number in a filter", filter, `{"and": [{"name": {"eq": 7}}]}`, "v.and.0.name.eq"},
		{"a list for an object", filter, `{"name": [1]}`, "v.name"},
		{"an enum in another case", format, `"yaml"`, "v"},
		{"a number for an enum", format, `1`, "v"},
		{"a string for a Boolean", dry, `"true"`, "v"},
		{"a text for a Time", since, `"nope"`, "v"},
		{"a number for a Time", since, `5`, "v"},
		{"a text for a Time in a filter", filter, `{"createdAt": {"in": ["2026-01-01T00:00:00Z", "nope"]}}`, "v.createdAt.in.1"},
		{"a long value", page, `"` + strings.Repeat("x", 1<<20) + `"`, "v"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := e.post(t, c.query, json.RawMessage(`{"v": `+c.value+`}`))
			var got struct {
				Data   json.RawMessage
				Errors []struct {
					Extensions struct {
						Code string
						Path []any
					}
				}
			}
			if err := json.Unmarshal([]byte(text), &got); err != nil || got.Data != nil || len(got.Errors) != 1 || got.Errors[0].Extensions.Code != "GRAPHQL_VALIDATION_FAILED" || len(text) > 1000 {
				t.Fatalf("%.500s", text)
			}
			var at []string
			for _, step := range got.Errors[0].Extensions.Path {
				raw, _ := json.Marshal(step)
				at = append(at, strings.Trim(string(raw), `"`))
			}
			if strings.Join(at, ".") != c.at {
				t.Errorf("at %v", at)
			}
		})
	}
	for _, c := range []struct{ name, query, value string }{
		{"a Time", since, `"2026-01-01T00:00:00Z"`},
		{"an Int", page, `10`},
		{"an Int with a point", page, `10.0`},
		{"an Int with an exponent", page, `1e1`},
		{"negative zero", page, `-0.0`},
		{"one Int with an exponent for a list of them", ints, `{"spec": {"resource": {"mtu": {"in": 15e2}}}}`},
		{"an ID with an exponent", id, `1e3`},
		{"null for what may be null", page, `null`},
		{"an ID that is a number", id, `7`},
		{"one ID for a list", some, `"a"`},
		{"an enum", format, `"YAML"`},
		{"one filter for a list of them", filter, `{"and": {"name": {"eq": "a"}}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := e.post(t, c.query, json.RawMessage(`{"v": `+c.value+`}`)); strings.Contains(got, "VALIDATION_FAILED") || strings.Contains(got, "INTERNAL") {
				t.Error(got)
			}
		})
	}
}
