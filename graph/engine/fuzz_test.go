package engine_test

import (
	"encoding/json"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/graph/engine/enginetest"
)

// notCompared are the fields that gqlgen executes and the reference does not.
var notCompared = regexp.MustCompile(`\b(kinds|dependencyTree|updateKind|reveal|viewer|access|accessGrants|__schema|__type)\b`)

// FuzzDocument executes whatever document is valid, and holds the answer
// against that of the reference.
func FuzzDocument(f *testing.F) {
	for _, seed := range []struct{ query, variables string }{
		{`{ tokens(first: 2, filter: {name: {startsWith: "t"}}) { totalCount edges { cursor node { id ...s } } } } fragment s on Token { metadata { name labels { key value } } spec { k: colour colours } }`, ``},
		{`query($n: String! = "t", $skip: Boolean!) { token(name: $n) @skip(if: $skip) { ... on Resource { kind } manifest service { grants(last: 1) { nodes { id } } } __typename } }`, `{"skip":false}`},
		{`query($ids: [ID!]!) { nodes(ids: $ids) { __typename id ... on Service { a: kind } } resource(kind: "Token", name: "u") { metadata { revision } } }`, `{"ids":["x"]}`},
		{`{ services(last: -1) { pageInfo { hasNextPage startCursor } } b: tokens(orderBy: [{field: NAME, direction: DESC}]) { nodes { subKind others { nodes { metadata { name } } } } } }`, ``},
	} {
		f.Add(seed.query, seed.variables)
	}
	catalogue := shelves(f)
	ours, twin := newGateway(f, catalogue, nil), newGateway(f, catalogue, nil)
	for _, g := range []*gateway{ours, twin} {
		for _, mutation := range []string{
			`mutation { createService(input: {name: "a", labels: [{key: "x", value: "y"}], spec: {}}) { warnings { message } } }`,
			`mutation { createToken(input: {name: "t", subKind: "robot", spec: {serviceRef: "a", otherRefs: ["gone", "a"], grants: [{serviceRef: "a"}], extras: [{key: "x", value: "1"}], colours: [BLUE]}}) { warnings { message } } }`,
			`mutation { createToken(input: {name: "u", spec: {serviceRef: "gone", limits: {callsPerHour: 9007199254740991}}}) { warnings { message } } }`,
		} {
			if a := g.do(mutation, nil); a.Errors != nil {
				f.Fatalf("%s: %v", mutation, a.Errors)
			}
		}
	}
	reference := &enginetest.Reference{Schema: ours.engine.Schema(), Catalogue: catalogue, Service: twin.svc}
	f.Fuzz(func(t *testing.T, query, text string) {
		if len(query) > 4<<10 || notCompared.MatchString(query) {
			return
		}
		var variables map[string]any
		if json.Unmarshal([]byte(text), &variables) == nil {
			variables = decoded(t, variables)
		}
		oc, errs := ours.prepare(query, variables)
		if errs != nil || oc.Operation.Operation != ast.Query {
			return
		}
		wantData, wantErrors := reference.Execute(t.Context(), oc)
		ours.t = t
		got := ours.do(query, variables)
		if string(got.Data) != string(wantData) {
			t.Fatalf("got  %s\nwant %s", got.Data, wantData)
		}
		if diff := cmp.Diff(errorTexts(wantErrors), errorTexts(got.Errors)); diff != "" {
			t.Fatalf("errors (-want +got):\n%s", diff)
		}
	})
}
