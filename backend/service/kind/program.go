package kind

import (
	"context"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types/ref"

	"github.com/sluicegw/sluice/backend/budget"
)

// ruleCost bounds the evaluation of one rule, in CEL's cost units.
const ruleCost = 1_000_000

// program returns the program of a rule.
func (c *compiler) program(rule *cel.Ast) (cel.Program, error) {
	c.costs.learn(rule)
	return c.env.Program(rule, cel.CostTracking(c.costs), cel.CostLimit(ruleCost), cel.InterruptCheckFrequency(1000))
}

// evaluate runs the program of a rule and charges it.
func (v *Violations) evaluate(ctx context.Context, p cel.Program, vars any) (ref.Val, error) {
	out, details, err := p.ContextEval(ctx, vars)
	if cost := details.ActualCost(); cost != nil {
		v.charge(budget.CELUnit * int(*cost))
	}
	return out, err
}
