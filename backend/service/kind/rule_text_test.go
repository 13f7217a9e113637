package kind_test

import (
	"encoding/json"
	"errors"
	"fmt"
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
	k := kindOf("Ruled", &descriptor.Shape{
		Name:   "RuledSpec",
		Fields: []descriptor.Field{{Name: "a", Type: descriptor.TypeString}, {Name: "list", Type: descriptor.TypeString, List: true}},
		Rules:  []descriptor.Rule{{CEL: rule, Message: "broken"}},
	})
	compiled, err := kind.Compile([]descriptor.Kind{k})
	if err != nil {
		t.Fatal(err)
	}
	return compiled.All()[0].Spec
}

// TestRule_ATextThatARuleMakesIsBounded before it is made, or by what CEL is told that it costs.
func TestRule_ATextThatARuleMakesIsBounded(t *testing.T) {
	t.Parallel()
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
		"self.a.split('').all(i, '%s %s'.format([self.list, i]) != '')":   true,
		"self.a.split('').all(i, [self.list] == [self.list])":             true,
	} {
		var found kind.Violations
		found.Object(t.Context(), ruled(t, rule), failure.At("spec"), tree)
		var e *failure.Error
		switch err := found.Err(backend.Key{}); {
		case bounded && (!errors.As(err, &e) || e.Code != failure.CodeLimitExceeded):
			t.Errorf("%s: %v", rule, err)
		case !bounded && err != nil:
			t.Errorf("%s: %v", rule, err)
		}
	}
}

// TestRule_AllRulesOfAnOperationHaveOneBudget whatever each of them may cost.
func TestRule_AllRulesOfAnOperationHaveOneBudget(t *testing.T) {
	spec := ruled(t, "self.list.all(x, self.list.all(y, x == y))")
	list := make([]any, 100)
	for i := range list {
		list[i] = "x"
	}
	ctx := budget.With(t.Context(), budget.New(budget.Limits{budget.Steps: 1_000_000}))
	for n := range 100 {
		var found kind.Violations
		found.Object(ctx, spec, failure.At("spec"), map[string]any{"list": list})
		var over *budget.ExceededError
		if err := found.Err(backend.Key{}); errors.As(err, &over) && over.Thing == budget.Steps && n > 0 {
			return
		} else if err != nil {
			t.Fatal(n, err)
		}
	}
	t.Error("a hundred times ten thousand comparisons are within the budget")
}

// TestRule_LongListsAreWithinTheBudget where their elements are told apart by texts, and what
// is stored and written again is paid for.
func TestRule_LongListsAreWithinTheBudget(t *testing.T) {
	element := &descriptor.Shape{Name: "Listed1", Fields: []descriptor.Field{{Name: "key", Type: descriptor.TypeString}, {Name: "port", Type: descriptor.TypeInt}}}
	k := kindOf("Listed", &descriptor.Shape{Name: "ListedSpec", Fields: []descriptor.Field{
		{Name: "map", Type: descriptor.TypeObject, Shape: element, List: true, ListType: descriptor.ListMap, Keys: []string{"key"}},
		{Name: "ports", Type: descriptor.TypeInt, List: true, ListType: descriptor.ListSet},
	}})
	compiled, err := kind.Compile([]descriptor.Kind{k})
	if err != nil {
		t.Fatal(err)
	}
	spec := compiled.All()[0].Spec
	evaluate := func(steps int64, tree map[string]any) error {
		var found kind.Violations
		found.Object(budget.With(t.Context(), budget.New(budget.Limits{budget.Steps: steps})), spec, failure.At("spec"), tree)
		return found.Err(backend.Key{})
	}
	var objects, ports []any
	for i := range 5000 {
		objects = append(objects, map[string]any{"key": fmt.Sprint("k", i), "port": json.Number("1")})
		ports = append(ports, json.Number(fmt.Sprint(i)))
	}
	if err := evaluate(10_000_000, map[string]any{"map": objects, "ports": ports}); err != nil {
		t.Error(err)
	}
	if err := evaluate(10_000, map[string]any{"ports": ports}); err != nil {
		t.Errorf("numbers that differ: %v", err)
	}
	again := append(objects[:len(objects):len(objects)], map[string]any{"key": "k7"})
	var e *failure.Error
	if err := evaluate(10_000_000, map[string]any{"map": again}); !errors.As(err, &e) || len(e.Violations) != 1 || e.Violations[0].Path != "spec.map[5000]" {
		t.Errorf("a key that is there: %v", err)
	}
	// What a shape cannot name is looked for once, and elements are paired only if there is any.
	next, old := map[string]any{"map": objects}, map[string]any{"map": again}
	spec.KeepUnknown(next, old)
	if n := len(next["map"].([]any)); n != 5000 {
		t.Errorf("%d elements", n)
	}
	names := map[string]any{}
	for i := range 5000 {
		names[fmt.Sprint("unknown", i)] = true
	}
	if err := evaluate(10_000_000, names); !errors.As(err, &e) || len(e.Violations) != 100 || !strings.HasPrefix(e.Message, "5000 values") {
		t.Errorf("names that are not known: %.200v", err)
	}
}
