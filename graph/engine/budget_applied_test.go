package engine_test

import "testing"

func TestAnAnswerThatFailsBelowAChangeSaysThatItWasMade(t *testing.T) {
	g := newGateway(t, shelves(t), nil)
	for _, c := range []struct{ write, want string }{
		{`mutation { createService(input: {name: "a", spec: {}}) { dryRun service { id tokens(filter: {name: {}}) { totalCount } } } }`, "APPLIED"},
		{`mutation { deleteService(input: {name: "a", dryRun: true}) { dryRun blockedBy(first: -1) { totalCount } } }`, ""},
		{`mutation { deleteService(input: {name: "a"}) { dryRun blockedBy(first: -1) { totalCount } } }`, "APPLIED"},
	} {
		got := g.do(c.write, nil)
		if len(got.Errors) != 1 {
			t.Fatalf("%s: %s %v", c.write, got.Data, got.Errors)
		}
		if outcome, present := got.Errors[0].Extensions["outcome"].(string); present != (c.want != "") || outcome != c.want {
			t.Errorf("%s: outcome %q, want %q", c.write, outcome, c.want)
		}
	}
	g.do(`mutation { createService(input: {name: "a", spec: {}}) { dryRun } }`, nil)
	got := g.do(`mutation { a: createService(input: {name: "a", spec: {}}) { warnings { message } } }`, nil)
	if len(got.Errors) != 1 || got.Errors[0].Extensions["outcome"] != nil {
		t.Errorf("what was refused: %v %v", got.Errors, got.Errors[0].Extensions)
	}
}
