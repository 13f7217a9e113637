package kind

import (
	"context"
	"slices"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types/ref"

	"github.com/sluicegw/sluice/backend/budget"
)

// program is a compiled rule, or several.
type program struct {
	cel.Program
	// plain is what it costs if it only compares, in steps: see isPlain. Else its cost is
	// counted, and this is 0.
	plain int
}

// ruleCost bounds the evaluation of one rule, in CEL's cost units.
const ruleCost = 1_000_000

// program of a rule.
func (c *compiler) program(rule *cel.Ast) (program, error) {
	if root := ast.NavigateAST(rule.NativeRep()); isPlain(root) {
		p, err := c.env.Program(rule)
		return program{p, budget.PlainRule + len(ast.MatchDescendants(root, ast.AllMatcher()))}, err
	}
	c.costs.learn(rule)
	p, err := c.env.Program(rule, cel.CostTracking(c.costs), cel.CostLimit(ruleCost), cel.InterruptCheckFrequency(1000))
	return program{p, 0}, err
}

// evaluate runs the program and charges it. Counting the cost takes as long as a plain
// rule itself.
func (p program) evaluate(ctx context.Context, v *Violations, vars any) (ref.Val, error) {
	if p.plain > 0 {
		v.charge(p.plain)
		out, _, err := p.Eval(vars)
		return out, err
	}
	out, details, err := p.ContextEval(ctx, vars)
	if cost := details.ActualCost(); cost != nil {
		v.charge(budget.CELUnit * int(*cost))
	}
	return out, err
}

// isPlain says whether an expression does nothing but compare parts of the object with
// constants, and ask how large they are or whether they are there. It costs at most a pass
// over a text of the object for each of its parts.
func isPlain(root ast.NavigableExpr) bool {
	return len(ast.MatchDescendants(root, func(e ast.NavigableExpr) bool {
		return e.Kind() == ast.ComprehensionKind || e.Kind() == ast.CallKind && !isPlainCall(e.AsCall())
	})) == 0
}

func isPlainCall(call ast.CallExpr) bool {
	switch call.FunctionName() {
	case operators.Conditional, operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot, "size":
		return true
	case operators.Equals, operators.NotEquals, operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals:
		return slices.ContainsFunc(call.Args(), isConstant)
	case operators.In:
		return isConstant(call.Args()[1])
	case "startsWith", "endsWith", "contains":
		return len(call.Args()) == 1 && isConstant(call.Args()[0])
	}
	return false
}

// isConstant says whether an expression is a literal, or a list of such.
func isConstant(e ast.Expr) bool {
	switch e.Kind() {
	case ast.LiteralKind:
		return true
	case ast.ListKind:
		return !slices.ContainsFunc(e.AsList().Elements(), func(e ast.Expr) bool { return !isConstant(e) })
	}
	return false
}
