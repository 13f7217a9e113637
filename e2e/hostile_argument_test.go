//go:build hostile

package e2e_test

import (
	"fmt"
	"strings"
	"testing"
)

// arguments are requests whose arguments are large, or stand in many places.
func arguments() []hostileDocument {
	criteria := map[string]any{"o": repeated(16_700, map[string]any{"field": "NAME"})}
	inPlaces := `query($o: [PortOrder!]) { ` + aliased(19, "ports(first: 1) { ...F }") + `} fragment F on PortConnection { nodes { network { ` + aliased(24, "ports(first: 1, orderBy: $o) { __typename }") + `} } }`
	return []hostileDocument{
		{"95 x an order of 16,700 criteria", small, "LIMIT_EXCEEDED", true, request{`query($o: [PortOrder!]) { ` + aliased(95, "ports(first: 1, orderBy: $o) { nodes { id } }") + `}`, criteria}},
		{"an order of 16,700 criteria in 456 places", small, "LIMIT_EXCEEDED", false, request{inPlaces, criteria}},
		{"95 x nodes of 90,000 ids", small, "", false, request{`query($i: [ID!]!) { ` + aliased(95, "nodes(ids: $i) { id }") + `}`, map[string]any{"i": repeated(90_000, "")}}},
		{"a filter of 450 conditions in 432 places", small, "", true, request{query: filterInPlaces("")}},
		{"10,000 pages by a filter of 4,500 names", small, "", true, request{`query($f: ServerFilter!) { ports(first: 1000) { nodes { ` + aliased(10, "servers(first: 1, filter: $f) { __typename }") + ` } } }`, map[string]any{"f": manyNames(45, 100)}}},
		{"names of 3,900 bytes that nothing has", small, "", true, request{query: `{ ...F } fragment F on ` + strings.Repeat("P", 3900) + ` { id }`}},
	}
}

// manyNames is a filter of n lists of names, all different.
func manyNames(n, each int) map[string]any {
	var lists []any
	for i := range n {
		var names []string
		for j := range each {
			names = append(names, fmt.Sprintf("n%d-%d", i, j))
		}
		lists = append(lists, condition("in", names))
	}
	return map[string]any{"or": lists}
}

// filterInPlaces is a document with one literal filter, in a fragment that is spread in many
// places. Each of the variables includes something.
func filterInPlaces(variables string) string {
	fifty := `{or: [` + strings.Repeat(`{name: {eq: ""}} `, 50) + `]}`
	var head, conditions string
	for _, name := range variables {
		head += fmt.Sprintf("$%c: Boolean! ", name)
		conditions += fmt.Sprintf("v%c: __typename @include(if: $%c) ", name, name)
	}
	if head != "" {
		head = "query(" + head + ")"
	}
	return head + ` { ` + conditions + ` port(name: "nope") { ` + aliased(18, "network { ...F }") + `} } fragment F on Network { ports(first: 0) { nodes { ` +
		aliased(23, "network { ...H }") + ` } } } fragment H on Network { ports(first: 0, filter: {and: [` + strings.Repeat(fifty+" ", 9) + `]}) { __typename } }`
}

// truths sends one document with the truths of its conditions, one after the other: what is
// kept of it is bounded.
func truths(_ *testing.T, g *gateway, c *tally) func() {
	const n = 20
	query := filterInPlaces("abcde")
	return func() {
		for i := range n {
			values := map[string]any{}
			for bit, name := range "abcde" {
				values[string(name)] = i>>bit&1 == 1
			}
			g.many(c, 1, request{query, values})
		}
	}
}
