//go:build hostile

package e2e_test

import (
	"fmt"
	"slices"
	"strings"
)

// hostileDocument is a request that means to cost much.
type hostileDocument struct {
	name    string
	data    data
	limit   string // part of what must be told
	crowded bool   // it is also sent several times at once
	request
}

// portFields are all that is small of a port.
const portFields = `id kind apiVersion metadata { namespace name uid revision generation createdAt updatedAt } spec { managementPolicy resource { networkRef addresses { subnetRef ip } } }`

// netID stands for the id of the network in documents.
const netID = "NETWORK-ID"

// documents are hostile requests, each sent once.
func documents() []hostileDocument {
	return slices.Concat(pages(), byHand(), filters(), arguments(), inputs())
}

// overPorts selects something of each of 1,000 ports.
func overPorts(what string) request {
	return request{query: `{ ports(first: 1000) { nodes { ` + what + ` } } }`}
}

// pages are what kinds answer.
func pages() []hostileDocument {
	query := func(q string) request { return request{query: q} }
	return []hostileDocument{
		{"1,000 x 1,000 nested pages", small, "limit-objects", false, overPorts(`network { ports(first: 1000) { nodes { id } } }`)},
		{"20 aliased totalCount with a filter", small, "LIMIT_EXCEEDED", false, overPorts(`network { ports(first: 0, filter: {name: {ne: "x"}}) { ` + aliased(20, "totalCount") + `} }`)},
		{"90 aliases of nodes in one page", small, "limit-answer", false, query(`{ ports(first: 1000) { ` + aliased(90, "nodes { "+portFields+" }") + `} }`)},
		{"40 x 20 aliased introspection lists", small, "limit-steps", false, query(`{ __schema { ` + aliased(20, "types { ...T }") + `} } fragment T on __Type { ` + aliased(40, "fields { name }") + `}`)},
		{"95 aliased manifest", small, "limit-answer", false, overPorts(aliased(95, "manifest"))},
		{"a filter literal of 3 MB", small, "limit-text", false, query(`{ ports(filter: {name: {eq: "` + strings.Repeat("x", 3_000_000) + `"}}) { nodes { id } } }`)},
		{"a filter literal of 3 MB of short names", small, "limit-tokens", false, query(`{ ports(filter: {name: {in: [` + strings.Repeat(`"x",`, 600_000) + `]}}) { nodes { id } } }`)},
		{"8 x 1,000 pages by a filter that is refused", small, "LIMIT_EXCEEDED", false, query(`{ ports(first: 1000) { nodes { ` + aliased(8, `servers(filter: {or: [`+strings.Repeat(`{name: {contains: "z"}} `, 51)+`]}) { nodes { id } }`) + `} } }`)},
		{"15 manifests of 1 MB as YAML", blobs, "limit-steps", false, query(`{ blobs(first: 15) { nodes { manifest(format: YAML) } } }`)},
		{"60 pages of 1 MB resources in one document", blobs, "LIMIT_EXCEEDED", false, query(`{ ` + aliased(60, "blobs(first: 1) { nodes { spec { text } } }") + `}`)},
		{"95 x dependencies { totalCount }", small, "", true, overPorts(aliased(95, "dependencies { totalCount }"))},
		{"95 x dependencies { nodes { kind } }", small, "", false, overPorts(aliased(45, "dependencies { nodes { kind } }"))},
		{"95 x dependencies { pageInfo }", small, "", false, overPorts(aliased(45, "dependencies { pageInfo { hasNextPage endCursor } }"))},
		{"95 x dependents(first: 1000)", small, "", false, query(`{ ` + aliased(95, `network(name: "net") { dependents(first: 1000) { totalCount nodes { name resource { id } } } }`) + `}`)},
		{"95 x blockedBy { totalCount } of one network", large, "", true, query(`{ ` + aliased(95, `network(name: "net") { blockedBy { totalCount } }`) + `}`)},
		{"10 x blockedBy { totalCount } of 1,000 ports' network", large, "", false, overPorts(`network { ` + aliased(10, `blockedBy { totalCount }`) + `}`)},
		{"1,000 x a page of dependents", large, "", false, overPorts(`network { dependents(first: 5) { totalCount nodes { name state path resource { id } } } }`)},
		{"95 pages, each in an order", large, "", false, query(`{ ` + aliased(95, `ports(last: 1, filter: {name: {ne: "x"}}, orderBy: [{field: UPDATED_AT}, {field: NAME, direction: DESC}]) { nodes { id } }`) + `}`)},
	}
}

// byHand are fields that are not derived from a kind.
func byHand() []hostileDocument {
	query := func(q string) request { return request{query: q} }
	ids := func(n int, id string) map[string]any {
		out := make([]string, n)
		for i := range out {
			out[i] = id
		}
		return map[string]any{"ids": out}
	}
	return []hostileDocument{
		{"95 x kinds", small, "", true, query(`{ ` + aliased(95, `kinds { name singular plural shortNames verbs references { path kind } fields { name type description } }`) + `}`)},
		{"95 x dependencyTree of 1,000", small, "", false, query(`{ ` + aliased(95, `dependencyTree(id: "`+netID+`", depth: 10) { truncated }`) + `}`)},
		{"95 x dependencyTree of 10,000", large, "", true, query(`{ ` + aliased(95, `dependencyTree(id: "`+netID+`", depth: 10) { truncated }`) + `}`)},
		{"95 dependencyTrees that differ", large, "", false, query(`{ ` + aliasedBy(95, func(i int) string {
			return fmt.Sprintf(`dependencyTree(id: "%s", depth: %d, direction: %s) { dependents { name } }`, netID, 1+i/3%10, []string{"BOTH", "DEPENDENCIES", "DEPENDENTS"}[i%3])
		}) + `}`)},
		{"nodes of 6,000 ids", small, "", false, request{`query($ids: [ID!]!) { nodes(ids: $ids) { id } }`, ids(6000, netID)}},
		{"20 x nodes of 1,000 ids", small, "", false, request{`query($ids: [ID!]!) { ` + aliased(20, `nodes(ids: $ids) { id }`) + `}`, ids(1000, netID)}},
		{"95 x nodes of 1,000 wrong ids", small, "", false, request{`query($ids: [ID!]!) { ` + aliased(95, `nodes(ids: $ids) { id }`) + `}`, ids(1000, "x")}},
		{"95 x resources of all kinds", large, "", false, query(`{ ` + aliased(95, `resources(kind: "port", first: 1000) { totalCount nodes { id metadata { name } } }`) + `}`)},
		{"95 x reveal", small, "", false, query(`{ ` + aliased(95, `reveal(kind: "Secret", name: "s") { revision values { key value } }`) + `}`)},
	}
}

// condition is a filter by name.
func condition(operator string, value any) map[string]any {
	return map[string]any{"name": map[string]any{operator: value}}
}

// anyOf is a filter of n different conditions; the number makes it differ from others.
func anyOf(n, number int) map[string]any {
	var out []any
	for i := range n {
		out = append(out, condition("contains", fmt.Sprintf("z%d-%d", number, i)))
	}
	return map[string]any{"or": out}
}

// filters are conditions on many rows.
func filters() []hostileDocument {
	counted := func(n int, filter any) request {
		return request{`query($f: PortFilter) { ` + aliased(n, `ports(first: 0, filter: $f) { totalCount }`) + `}`, map[string]any{"f": filter}}
	}
	different := func(n int) request {
		out := request{variables: map[string]any{}}
		declared := ""
		for i := range n {
			declared += fmt.Sprintf("$f%d: PortFilter ", i)
			out.variables[fmt.Sprint("f", i)] = anyOf(50, i)
		}
		out.query = `query(` + declared + `) { ` + aliasedBy(n, func(i int) string { return fmt.Sprintf(`ports(first: 0, filter: $f%d) { totalCount }`, i) }) + `}`
		return out
	}
	nested := func(what string, filter any) request {
		return request{`query($f: PortFilter) { ports(first: 1000) { nodes { network { ports(` + what + `, filter: $f) { totalCount } } } } }`, map[string]any{"f": filter}}
	}
	spec := []any{}
	for i := range 50 {
		spec = append(spec, map[string]any{"spec": map[string]any{"resource": map[string]any{"networkRef": map[string]any{"contains": fmt.Sprint("z", i)}}}})
	}
	times, labels, names, kept, conditions := []any{}, []any{}, []string{}, []any{}, []any{}
	for i := range 50 {
		times = append(times, map[string]any{"createdAt": map[string]any{"lt": fmt.Sprintf("20%02d-01-01T00:00:00Z", i%20)}})
		labels = append(labels, map[string]any{"labels": []any{map[string]any{"key": fmt.Sprint("k", i), "isNull": false}}})
		kept = append(kept, condition("contains", "p"))
		conditions = append(conditions, map[string]any{"conditions": repeated(50, map[string]any{"type": "AVAILABLE", "status": map[string]any{"eq": "TRUE"}})})
	}
	for i := range 1000 {
		names = append(names, fmt.Sprintf("zz%06d", i))
	}
	var groups []any
	for i := range 6 {
		var rows []any
		for j := range 20 {
			rows = append(rows, anyOf(50, i*20+j))
		}
		groups = append(groups, map[string]any{"or": rows})
	}
	or := func(of any) map[string]any { return map[string]any{"or": of} }
	return []hostileDocument{
		{"a count by 50 contains", large, "", false, counted(1, anyOf(50, 0))},
		{"a count by 50 conditions on the spec", large, "", false, counted(1, or(spec))},
		{"a count by 50 times", large, "", false, counted(1, or(times))},
		{"a count by 50 labels", large, "", false, counted(1, or(labels))},
		{"a count by 2,500 conditions of the status", large, "", false, counted(1, or(conditions))},
		{"a count by 6,000 contains", large, "", false, counted(1, or(groups))},
		{"95 x a filter of 4,000 conditions", small, "", false, request{`query($f: NetworkFilter) { ` + aliased(95, `networks(first: 0, filter: $f) { __typename }`) + `}`, map[string]any{"f": map[string]any{"and": repeated(4000, map[string]any{"spec": map[string]any{"resource": map[string]any{"name": map[string]any{"gt": "k1"}}}})}}}},
		{"95 counts by one list of 1,000 names", large, "", false, counted(95, map[string]any{"not": condition("in", names)})},
		{"95 counts by a text of 250 KB", large, "", false, counted(95, condition("contains", strings.Repeat("a", 250_000)))},
		{"10 different counts by 50 contains", large, "", false, different(10)},
		{"90 different counts by 50 contains", large, "", true, different(90)},
		{"1,000 nested counts by 50 contains that all pass", large, "", true, nested("first: 0", map[string]any{"and": kept})},
		{"1,000 nested counts by 50 contains that none pass", small, "", false, nested("first: 0", anyOf(50, 0))},
		{"1,000 nested pages by 50 contains that none pass", small, "", false, nested("first: 1", anyOf(50, 0))},
	}
}

func repeated(n int, value any) []any {
	out := make([]any, n)
	for i := range out {
		out[i] = value
	}
	return out
}
