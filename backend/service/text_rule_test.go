package service_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// ruled is the spec of a kind with one rule and a text that matches a pattern.
func ruled(t *testing.T, rule string) *kind.Shape {
	t.Helper()
	k := widget()
	k.Name, k.Singular, k.Plural, k.Status, k.Indexes, k.References, k.SubKinds = "Ruled", "ruled", "ruleds", nil, nil, nil, nil
	k.Spec = &descriptor.Shape{
		Name:   "RuledSpec",
		Fields: []descriptor.Field{{Name: "a", Type: descriptor.TypeString}, {Name: "list", Type: descriptor.TypeString, List: true}},
		Rules:  []descriptor.Rule{{CEL: rule, Message: "broken"}},
	}
	compiled, err := kind.Compile([]descriptor.Kind{k})
	if err != nil {
		t.Fatal(err)
	}
	return compiled.All()[0].Spec
}

// TestATextThatARuleMakesIsBounded before it is made, or by what CEL is told that it costs.
func TestATextThatARuleMakesIsBounded(t *testing.T) {
	long := strings.Repeat("x", 200_000)
	tree := map[string]any{"a": long, "list": []any{long, long, long}}
	for rule, bounded := range map[string]bool{
		"self.a.replace('x', self.a) != 'y'":                              true,
		"self.a.replace('', self.a, 100) != 'y'":                          true,
		"self.list.join(self.a) != 'y'":                                   true,
		"self.list.map(x, self.a).join() != 'y'":                          false,
		"self.a.replace('x', 'yy').size() == 400000":                      false,
		"self.a.replace('', 'y', 2).startsWith('yxyx')":                   false,
		"['a', 'b'].join('-') == 'a-b' && self.list.join().size() > 1":    false,
		"[1,2,3,4].all(i, [1,2,3,4].all(j, (self.a + self.a) != 'y'))":    false,
		"self.a.split('').all(i, self.a + self.a + self.a + self.a != i)": true,
		"self.a.split('').all(i, self.a.matches('^(x|y)*$'))":             true,
	} {
		var found kind.Violations
		found.Object(t.Context(), ruled(t, rule), "spec", tree)
		var e *failure.Error
		switch err := found.Err(backend.Key{}); {
		case bounded && (!errors.As(err, &e) || e.Code != failure.CodeLimitExceeded):
			t.Errorf("%s: %v", rule, err)
		case !bounded && err != nil:
			t.Errorf("%s: %v", rule, err)
		}
	}
}

// TestAllRulesOfAnOperationHaveOneBudget whatever each of them may cost.
func TestAllRulesOfAnOperationHaveOneBudget(t *testing.T) {
	spec := ruled(t, "self.list.all(x, self.list.all(y, x == y))")
	list := make([]any, 100)
	for i := range list {
		list[i] = "x"
	}
	ctx := budget.With(t.Context(), budget.New(budget.Limits{budget.Steps: 1_000_000}))
	for n := range 100 {
		var found kind.Violations
		found.Object(ctx, spec, "spec", map[string]any{"list": list})
		var over *budget.ExceededError
		if err := found.Err(backend.Key{}); errors.As(err, &over) && over.Thing == budget.Steps && n > 0 {
			return
		} else if err != nil {
			t.Fatal(n, err)
		}
	}
	t.Error("a hundred times ten thousand comparisons are within the budget")
}
