package engine_test

import "testing"

func TestAnAnswerThatFailsBelowAChangeSaysThatItWasMade(t *testing.T) {
	g := newGateway(t, shelves(t), nil)
	const write = `mutation($dry: Boolean) { createService(input: {name: "a", spec: {}, dryRun: $dry}) { dryRun service { id tokens(filter: {name: {}}) { totalCount } } } }`
	for _, dry := range []bool{true, false} {
		got := g.do(write, map[string]any{"dry": dry})
		if string(got.Data) != `{"createService":null}` || len(got.Errors) != 1 {
			t.Fatalf("dry run %v: %s %v", dry, got.Data, got.Errors)
		}
		if outcome, told := got.Errors[0].Extensions["outcome"]; told == dry || told && outcome != "APPLIED" {
			t.Errorf("dry run %v: outcome %v", dry, outcome)
		}
	}
	got := g.do(`mutation { a: createService(input: {name: "a", spec: {}}) { warnings { message } } }`, nil)
	if len(got.Errors) != 1 || got.Errors[0].Extensions["outcome"] != nil {
		t.Errorf("what was refused: %v %v", got.Errors, got.Errors[0].Extensions)
	}
}
