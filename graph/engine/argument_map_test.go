package engine_test

import (
	"strings"
	"testing"
)

func TestAMapIsGivenAsEntriesAndStoredAsAnObject(t *testing.T) {
	g := newGateway(t, shelves(t), nil)
	const create = `mutation($text: String = "x") { createToken(input: {name: "t", subKind: "robot", spec: {serviceRef: "a", extras: `
	for entries, want := range map[string]string{
		`[{key: "a", value: $text}, {key: "b", value: "2"}]`: `{"createToken":{"preview":{"specJSON":{"extras":{"a":"x","b":"2"},"serviceRef":"a"}}}}`,
		`{key: "a", value: $text}`:                           `{"createToken":{"preview":{"specJSON":{"extras":{"a":"x"},"serviceRef":"a"}}}}`, // one value is a list of one
	} {
		if got := g.do(create+entries+`}, dryRun: true}) { preview { specJSON } } }`, nil); string(got.Data) != want {
			t.Errorf("%s: %s %v", entries, got.Data, got.Errors)
		}
	}
}

func TestAPatchOfAMapRemovesAnEntryByNull(t *testing.T) {
	g := newGateway(t, shelves(t), nil)
	g.do(`mutation { createToken(input: {name: "t", subKind: "robot", spec: {serviceRef: "a", extras: [{key: "a", value: "1"}, {key: "b", value: "2"}, {key: "c", value: "3"}]}}) { dryRun } }`, nil)
	revision := strings.Split(string(g.do(`{ token(name: "t") { metadata { revision } } }`, nil).Data), `"`)[7]
	got := g.do(`mutation { patchToken(input: {name: "t", expectedRevision: "`+revision+`", spec: {extras: [{key: "a", value: null}, {key: "b", value: "4"}, {key: "c"}]}}) { token { spec { extras { key value } } } } }`, nil)
	if want := `{"patchToken":{"token":{"spec":{"extras":[{"key":"b","value":"4"}]}}}}`; string(got.Data) != want {
		t.Errorf("%s %v", got.Data, got.Errors)
	}
}
