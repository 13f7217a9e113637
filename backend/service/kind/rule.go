package kind

import (
	"context"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
)

// rules judges an object by the rules of its shape that are about one state: by all
// at once, and by each where that does not hold, to say which.
func (v *Violations) rules(ctx context.Context, s *Shape, path string, tree map[string]any) {
	self := map[string]any{"self": s.effective(tree)}
	if s.together != nil && holds(ctx, s.together, self) {
		return
	}
	for _, r := range s.rules {
		if !r.transition {
			v.rule(ctx, r, path, self)
		}
	}
}

// holds says whether the program evaluates to true.
func holds(ctx context.Context, p cel.Program, vars map[string]any) bool {
	out, _, err := p.ContextEval(ctx, vars)
	return err == nil && out == types.True
}

func (v *Violations) rule(ctx context.Context, r rule, path string, vars map[string]any) {
	out, _, err := r.program.ContextEval(ctx, vars)
	if err != nil {
		v.Add(path, "rule", r.CEL, "%s (the rule could not be evaluated)", r.Message)
	} else if ok, isBool := out.Value().(bool); !isBool || !ok {
		v.Add(path, "rule", r.CEL, "%s", r.Message)
	}
}
