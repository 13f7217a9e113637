package kind

import "context"

// rules judges an object by the rules of its shape that are about one state: by all
// at once, and by each where that does not hold, to say which.
func (v *Violations) rules(ctx context.Context, s *Shape, at *location, tree map[string]any) {
	if s.together != nil && s.together.holds(ctx, s, tree) {
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
	out, err := r.program.evaluate(ctx, vars)
	if err != nil {
		v.Add(at.String(), "rule", r.CEL, "%s (the rule could not be evaluated)", r.Message)
	} else if ok, isBool := out.Value().(bool); !isBool || !ok {
		v.Add(at.String(), "rule", r.CEL, "%s", r.Message)
	}
}
