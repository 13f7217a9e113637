package server_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/graph/server"
)

// argument is a limit of what every kind's operations are asked, beside the
// constraints of specs.
type argument struct {
	limit int
	// ask is an operation with a value of n characters, bytes, elements or levels.
	ask func(n int) (query string, variables map[string]any)
	// code, extensions.field and what else the error says of one more.
	code, field string
	says        []string
}

// named reports whether extensions.limit is the limit; a format has a name there, and
// what makes no sense has none.
func (a argument) named() bool {
	return a.code != "BAD_USER_INPUT" && !slices.Contains(a.says, `"format"`)
}

func arguments() map[string]argument {
	create := func(change func(input map[string]any, n int)) func(int) (string, map[string]any) {
		return func(n int) (string, map[string]any) {
			input := map[string]any{"name": fmt.Sprint("n", n), "spec": map[string]any{"cloudCredentialsRef": map[string]any{"secretName": "s", "cloudName": "c"}, "resource": map[string]any{}}}
			change(input, n)
			return `mutation($i: CreateNetworkInput!) { createNetwork(input: $i) { network { id } } }`, map[string]any{"i": input}
		}
	}
	set := func(name string, value func(n int) any) func(int) (string, map[string]any) {
		return create(func(input map[string]any, n int) { input[name] = value(n) })
	}
	networks := func(name, typ string, value func(n int) any) func(int) (string, map[string]any) {
		return func(n int) (string, map[string]any) {
			return fmt.Sprintf(`query($v: %s) { networks(%s: $v) { nodes { id } } }`, typ, name), map[string]any{"v": value(n)}
		}
	}
	filter := func(value func(n int) any) func(int) (string, map[string]any) {
		return networks("filter", "NetworkFilter", value)
	}
	repeat := func(s string) func(int) any { return func(n int) any { return strings.Repeat(s, n) } }
	pair := func(key, value string) []any { return []any{map[string]any{"key": key, "value": value}} }
	const invalid, bad, over = "VALIDATION_FAILED", "BAD_USER_INPUT", "LIMIT_EXCEEDED"
	return map[string]argument{
		"the characters of a name":              {253, set("name", repeat("a")), invalid, "input.name", []string{"253", `"format"`}},
		"the characters of a namespace":         {63, set("namespace", repeat("a")), invalid, "input.namespace", []string{"63", `"format"`}},
		"the characters of a description":       {1024, set("description", repeat("é")), invalid, "input.description", []string{`"maxLength"`}},
		"the characters of a mutation's id":     {128, set("clientMutationId", repeat("é")), invalid, "input.clientMutationId", []string{`"maxLength"`}},
		"the characters of a label's key":       {63, set("labels", func(n int) any { return pair(strings.Repeat("a", n), "") }), invalid, "input.labels[0].key", []string{"63", `"format"`}},
		"the characters of a label's prefix":    {253, set("labels", func(n int) any { return pair(strings.Repeat("a", n)+"/a", "") }), invalid, "input.labels[0].key", []string{`"format"`}},
		"the characters of a label's value":     {63, set("labels", func(n int) any { return pair("a", strings.Repeat("a", n)) }), invalid, "input.labels[0].value", []string{"63", `"format"`}},
		"the characters of an annotation's key": {63, set("annotations", func(n int) any { return pair(strings.Repeat("a", n), "") }), invalid, "input.annotations[0].key", []string{"63", `"format"`}},
		"labels": {128, set("labels", func(n int) any {
			var out []any
			for i := range n {
				out = append(out, pair(fmt.Sprint("k", i), "")...)
			}
			return out
		}), invalid, "input.labels", []string{`"maxItems"`}},
		"the bytes of annotations": {256 << 10, set("annotations", func(n int) any {
			return append(pair("aa", strings.Repeat("x", n-1006)), pair("bb", strings.Repeat("é", 501))...)
		}), invalid, "input.annotations", []string{`"maxLength"`}},
		"the bytes of a manifest": {4 << 20, func(n int) (string, map[string]any) {
			text := "apiVersion: openstack.k-orc.cloud/v1alpha1\nkind: Network\nmetadata: {name: a}\nspec:\n  cloudCredentialsRef: {secretName: s, cloudName: c}\n  resource: {}\n#"
			return `mutation($m: String!) { applyManifest(input: {manifest: $m}) { outcome } }`, map[string]any{"m": text + strings.Repeat("x", n-len(text))}
		}, bad, "input.manifest", []string{"4194304"}},
		"first":          {1000, networks("first", "Int", func(n int) any { return n }), bad, "first", []string{"0 to 1000"}},
		"last":           {1000, networks("last", "Int", func(n int) any { return n }), bad, "last", []string{"0 to 1000"}},
		"first, negated": {0, networks("first", "Int", func(n int) any { return -n }), bad, "first", []string{"0 to 1000"}},
		"ids": {100, func(n int) (string, map[string]any) {
			return `query($v: [ID!]!) { nodes(ids: $v) { id } }`, map[string]any{"v": times(n, kind.GlobalID(backend.Key{Kind: "Network", Namespace: "default", Name: "nobody"}))}
		}, invalid, "ids", []string{`"maxItems"`}},
		"criteria of an order": {5, networks("orderBy", "[NetworkOrder!]", func(n int) any { return criteria(n) }), over, "orderBy", nil},
		"values of in":         {100, filter(func(n int) any { return map[string]any{"name": map[string]any{"in": times(n, "a")}} }), over, "filter.name.in", nil},
		"values of a label": {100, filter(func(n int) any {
			return map[string]any{"labels": []any{map[string]any{"key": "a", "in": times(n, "a")}}}
		}), over, "filter.labels[0].in", nil},
		"levels of a filter": {5, filter(levels), over, "filter.not.not.not.not.not", nil},
		"levels of a filter of any kind": {5, func(n int) (string, map[string]any) {
			return `query($f: ResourceFilter) { resources(kind: "Network", filter: $f) { nodes { id } } }`, map[string]any{"f": levels(n)}
		}, over, "filter.not.not.not.not.not", nil},
		"conditions of a filter": {50, filter(func(n int) any {
			return map[string]any{"labels": times(n, any(map[string]any{"key": "a", "isNull": false}))}
		}), over, "filter.labels[50]", nil},
	}
}

func times[T any](n int, v T) []T {
	out := make([]T, n)
	for i := range out {
		out[i] = v
	}
	return out
}

// levels is a filter that is nested that deep.
func levels(n int) any {
	out := map[string]any{"name": map[string]any{"eq": "a"}}
	for range n - 1 {
		out = map[string]any{"not": out}
	}
	return out
}

// criteria are n different ones.
func criteria(n int) []any {
	var out []any
	for _, field := range []string{"NAME", "NAMESPACE", "CREATED_AT", "UPDATED_AT", "SPEC_RESOURCE_MTU", "SPEC_RESOURCE_NAME"}[:n] {
		out = append(out, map[string]any{"field": field})
	}
	return out
}

// TestEveryLimitOfArgumentsTakesItsLimitAndRefusesOneMore: the error has the
// path of the argument, the limit and its rule.
func TestEveryLimitOfArgumentsTakesItsLimitAndRefusesOneMore(t *testing.T) {
	for name, c := range arguments() {
		t.Run(name, func(t *testing.T) {
			e := newEdge(t, plain, server.Config{Limits: server.Limits{Body: 16 << 20}})
			query, variables := c.ask(c.limit)
			if got := e.post(t, query, variables); strings.Contains(got, `"errors"`) {
				t.Errorf("%d: %.500s", c.limit, got)
			}
			query, variables = c.ask(c.limit + 1)
			got := e.post(t, query, variables)
			var answer struct {
				Errors []struct {
					Message    string
					Extensions map[string]any
				}
			}
			if err := json.Unmarshal([]byte(got), &answer); err != nil || len(answer.Errors) != 1 {
				t.Fatalf("%d: want one error: %.500s", c.limit+1, got)
			}
			ext := answer.Errors[0].Extensions
			if code := ext["code"]; code != c.code {
				t.Errorf("%d: %v, want %s: %.500s", c.limit+1, code, c.code, got)
			}
			if limit := fmt.Sprint(ext["limit"]); c.named() && limit != fmt.Sprint(c.limit) {
				t.Errorf("%d: limit %s: %.500s", c.limit+1, limit, got)
			}
			if field := ext["field"]; field != c.field {
				t.Errorf("%d: field %v, want %s: %.500s", c.limit+1, field, c.field, got)
			}
			for _, part := range c.says {
				if !strings.Contains(got, part) {
					t.Errorf("%d: the error lacks %s: %.500s", c.limit+1, part, got)
				}
			}
		})
	}
}

func TestAStreamOfManyKindsTakesTheLimitAndRefusesOneMore(t *testing.T) {
	web := httptest.NewServer(newEdge(t, plain, server.Config{}).Handler)
	defer web.Close()
	defer web.CloseClientConnections()
	for n, want := range map[int]string{100: `"IN_SYNC"`, 101: `"VALIDATION_FAILED"`} {
		body := asJSON(t, map[string]any{
			"query": `subscription ($kinds: [String!]) { resourceChanges(kinds: $kinds) { type } }`, "variables": map[string]any{"kinds": times(n, "Network")},
		})
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, web.URL+"/graphql", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "text/event-stream")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewReader(res.Body)
		said, err := untilBlank(lines)
		if err == nil && !strings.Contains(said, "data") { // when to come again is said first
			said, err = untilBlank(lines)
		}
		if _ = res.Body.Close(); err != nil || !strings.Contains(said, want) {
			t.Errorf("%d kinds: %s %v, want %s", n, said, err, want)
		}
	}
}
