package kind_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// TestRule_TheCostOfARuleDoesNotDependOnOthers: what one rule says of an object is the same
// whether another rule is broken or not, also if it costs much.
func TestRule_TheCostOfARuleDoesNotDependOnOthers(t *testing.T) {
	long := strings.Repeat("x", 12_000)
	numbers := make([]any, 400_000)
	for i := range numbers {
		numbers[i] = json.Number(strconv.Itoa(i % 10))
	}
	for _, c := range []struct {
		rule string
		tree map[string]any
	}{
		{"self.a.contains(self.b)", map[string]any{"a": long, "b": long}},
		{"self.a.contains('xx')", map[string]any{"a": long}},
		{"self.a in ['y', self.b]", map[string]any{"a": long, "b": long}},
		{"size(self.a) > 3 && self.a != 'y'", map[string]any{"a": long}},
		{strings.Repeat("self.numbers == self.numbers && ", 60) + "true", map[string]any{"numbers": numbers}},
		{strings.Repeat("self.a.replace('x', 'xx') != 'y' && ", 100) + "true", map[string]any{"a": long}},
	} {
		k := kindOf("Ruled", &descriptor.Shape{
			Name:   "RuledSpec",
			Fields: []descriptor.Field{{Name: "a", Type: descriptor.TypeString}, {Name: "b", Type: descriptor.TypeString}, {Name: "broken", Type: descriptor.TypeBoolean}, {Name: "numbers", Type: descriptor.TypeInt, List: true}},
			Rules:  []descriptor.Rule{{CEL: c.rule, Message: "costly"}, {CEL: "!has(self.broken)", Message: "broken"}},
		})
		compiled, err := kind.Compile([]descriptor.Kind{k})
		if err != nil {
			t.Fatal(err)
		}
		evaluate := func() (out []string) {
			var found kind.Violations
			found.Object(t.Context(), compiled.All()[0].Spec, failure.At("spec"), c.tree)
			var e *failure.Error
			if errors.As(found.Err(backend.Key{}), &e) {
				for _, v := range e.Violations {
					out = append(out, v.Message)
				}
			}
			return out
		}
		alone := evaluate()
		c.tree["broken"] = true
		if both := evaluate(); !slices.Equal(both, append(alone, "broken")) {
			t.Errorf("%.60s: %q, and %q with another rule that is broken", c.rule, alone, both)
		}
	}
}

func TestRule_ARuleThatIsNotEvaluatedToItsEndIsNoViolation(t *testing.T) {
	numbers := make([]any, 100_000)
	for i := range numbers {
		numbers[i] = json.Number("1")
	}
	late, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	for name, c := range map[string]struct {
		ctx  context.Context
		rule string
		want failure.Code
	}{
		"too costly":    {t.Context(), "self.numbers.all(n, !self.numbers.exists(m, m > n))", failure.CodeLimitExceeded},
		"out of time":   {late, "self.numbers.all(n, n > 0)", failure.CodeTimeout},
		"broken":        {t.Context(), "self.numbers.all(n, n > 1)", failure.CodeValidationFailed},
		"it has no sum": {t.Context(), "self.sum > 1", failure.CodeValidationFailed},
	} {
		t.Run(name, func(t *testing.T) {
			k := kindOf("Ruled", &descriptor.Shape{
				Name: "RuledSpec", Fields: []descriptor.Field{{Name: "numbers", Type: descriptor.TypeInt, List: true}},
				Rules: []descriptor.Rule{{CEL: c.rule, Message: "costly"}},
			})
			compiled, err := kind.Compile([]descriptor.Kind{k})
			if err != nil {
				t.Fatal(err)
			}
			var found kind.Violations
			found.Object(c.ctx, compiled.All()[0].Spec, failure.At("spec"), map[string]any{"numbers": numbers})
			var e *failure.Error
			if err := found.Err(backend.Key{}); !errors.As(err, &e) || e.Code != c.want {
				t.Fatalf("%v, want %s", err, c.want)
			}
			if e.Code == failure.CodeLimitExceeded && (e.Limit != 1_000_000 || e.Path != "spec") {
				t.Errorf("limit %v at %q", e.Limit, e.Path)
			}
		})
	}
}

// TestRule_AnExhaustedBudgetIsNoLicence: what was not judged for lack of a budget is refused.
func TestRule_AnExhaustedBudgetIsNoLicence(t *testing.T) {
	k := kindOf("Ruled", &descriptor.Shape{
		Name: "RuledSpec", Fields: []descriptor.Field{{Name: "n", Type: descriptor.TypeInt}}, Rules: []descriptor.Rule{{CEL: "self.n > 1", Message: "more than one"}},
	})
	compiled, err := kind.Compile([]descriptor.Kind{k})
	if err != nil {
		t.Fatal(err)
	}
	spent := budget.New(budget.Limits{budget.Steps: 1})
	_ = spent.Spend(budget.Steps, 2)
	ctx, spec := budget.With(t.Context(), spent), compiled.All()[0].Spec
	tree := map[string]any{"n": json.Number("1")}
	var created, changed kind.Violations
	created.Object(ctx, spec, failure.At("spec"), tree)
	changed.Change(ctx, spec, failure.At("spec"), tree, map[string]any{"n": json.Number("0")})
	for _, found := range []*kind.Violations{&created, &changed} {
		if err := found.Err(backend.Key{}); !errors.As(err, new(*budget.ExceededError)) {
			t.Errorf("%v", err)
		}
	}
}
