package kind

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"cel.dev/cel-go/interpreter"

	"github.com/sluicegw/sluice/backend/service/failure"
)

// rules judges an object by the rules of its shape that are about one state.
func (v *Violations) rules(ctx context.Context, s *Shape, at *location, tree map[string]any) {
	if v.spent.Over() != nil || !slices.ContainsFunc(s.rules, func(r rule) bool { return !r.transition }) {
		return
	}
	self := map[string]any{"self": s.effective(tree)}
	for _, r := range s.rules {
		if !r.transition {
			v.rule(ctx, r, at, self)
		}
	}
}

func (v *Violations) rule(ctx context.Context, r rule, at *location, vars map[string]any) {
	message := r.Message
	if v.Manifest {
		message = r.stored
	}
	if v.spent.Over() != nil {
		return
	}
	out, err := r.program.evaluate(ctx, v, vars)
	var costly interpreter.EvalCancelledError
	switch {
	case errors.Is(err, interpreter.InterruptError{}):
		v.stop(ctx.Err())
	case errors.As(err, &costly) && costly.Cause == interpreter.CostLimitExceeded:
		v.stop(&failure.Error{
			Code: failure.CodeLimitExceeded, Path: at.String(), Limit: ruleCost,
			Message: fmt.Sprintf("%s: the rule %q costs more than %d of CEL's units for this value; make the value smaller", at, failure.Shorten(r.CEL), ruleCost),
		})
	case err != nil:
		v.Add(at.String(), "rule", r.CEL, "%s (the rule could not be evaluated)", message)
	default:
		if ok, isBool := out.Value().(bool); !isBool || !ok {
			v.Add(at.String(), "rule", r.CEL, "%s", message)
		}
	}
}

// stop notes why a rule was not evaluated to its end: nobody knows whether it holds.
func (v *Violations) stop(why error) {
	if v.stopped == nil {
		v.stopped = why
	}
}
