package kind

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/interpreter"

	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/service/failure"
)

// ruleCost is the maximum cost of evaluating a rule once, in CEL's cost units.
const ruleCost = 1_000_000

// rules checks the rules of the shape that do not mention oldSelf. It skips rules whose inputs are the same in old.
func (v *Violations) rules(ctx context.Context, s *Shape, at *failure.Path, tree, old map[string]any) {
	if v.unchanged || v.spent.Over() != nil {
		return
	}
	var self map[string]any
	for _, r := range s.rules {
		if r.transition || old != nil && s.sameInputs(r, tree, old) {
			continue
		}
		if self == nil {
			self = map[string]any{"self": s.effective(tree)}
		}
		v.rule(ctx, r, at, self)
	}
}

// sameInputs reports whether the inputs of a rule have the same effective values in two
// objects.
func (s *Shape) sameInputs(r rule, a, b map[string]any) bool {
	if len(r.inputs) == 0 {
		return s.same(a, b, effective)
	}
	return !slices.ContainsFunc(r.inputs, func(in input) bool { return !in.sameAt(in.path, a, b) })
}

// input is a field that a rule reads.
type input struct {
	path []*Field
	// presence reports whether the rule only tests with has() whether the field is set.
	presence bool
}

// sameAt reports whether the input has the same value in two objects. path is the rest of its path.
func (in input) sameAt(path []*Field, a, b map[string]any) bool {
	f := path[0]
	x, ok1 := f.valueIn(a)
	y, ok2 := f.valueIn(b)
	if !ok1 || !ok2 || in.presence && len(path) == 1 {
		return ok1 == ok2
	}
	inner, isObject := x.(map[string]any)
	other, areObjects := y.(map[string]any)
	if len(path) > 1 && isObject && areObjects {
		return in.sameAt(path[1:], inner, other)
	}
	return f.same(x, y, effective)
}

// inputs returns the fields that a rule reads. It returns none if the rule uses the object as a whole, for example as
// the argument of a function.
func (s *Shape) inputs(rule ast.NavigableExpr) (out []input) {
	for _, e := range ast.MatchDescendants(rule, ast.AllMatcher()) {
		if e.Kind() != ast.IdentKind || e.AsIdent() != "self" && e.AsIdent() != "oldSelf" {
			continue
		}
		var found input
		in := s
		for {
			parent, ok := e.Parent()
			if !ok || in == nil || parent.Kind() != ast.SelectKind {
				break
			}
			name := parent.AsSelect().FieldName()
			at := slices.IndexFunc(in.ordered, func(f *Field) bool { return f.escaped == name })
			if at < 0 {
				break
			}
			f := in.ordered[at]
			found.path = append(found.path, f)
			found.presence = parent.AsSelect().IsTestOnly()
			e = parent
			in = f.shape
			if f.List {
				break
			}
		}
		if len(found.path) == 0 {
			return nil
		}
		out = append(out, found)
	}
	return out
}

func (v *Violations) rule(ctx context.Context, r rule, at *failure.Path, vars map[string]any) {
	message := r.Message
	if v.FieldNames == failure.ManifestNames {
		message = r.stored
	}
	if v.spent.Over() != nil {
		return
	}
	out, details, err := r.program.ContextEval(ctx, vars)
	if cost := details.ActualCost(); cost != nil {
		v.charge(budget.CELUnit * int(*cost))
	}
	var costly interpreter.EvalCancelledError
	switch {
	case err != nil && ctx.Err() != nil:
		v.stop(ctx.Err())
	case errors.As(err, &costly) && costly.Cause == interpreter.CostLimitExceeded:
		where := at.Text(v.FieldNames)
		v.stop(&failure.Error{
			Code: failure.CodeLimitExceeded, Path: where, Limit: ruleCost,
			Message: fmt.Sprintf("%s: the rule %q costs more than %d of CEL's units for this value; make the value smaller", where, failure.Shorten(r.CEL), ruleCost),
		})
	case err != nil:
		v.Add(at, "rule", r.CEL, "%s (the rule could not be evaluated)", message)
	default:
		if ok, isBool := out.Value().(bool); !isBool || !ok {
			v.Add(at, "rule", r.CEL, "%s", message)
		}
	}
}

// stop records why a rule could not be evaluated. It is then unknown whether the rule is satisfied.
func (v *Violations) stop(why error) {
	if v.stopped == nil {
		v.stopped = why
	}
}
