package kinds

import (
	"encoding/json"

	"cel.dev/cel-go/cel"
	celast "cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/ext"

	"github.com/sluicegw/sluice/backend/descriptor"
)

// HoldsWithout reports whether clients that do not know some fields can never break a rule: the rule mentions only
// fields of s that known lacks, and it holds if none of them is set.
func HoldsWithout(s, known *descriptor.Shape, rule string) bool {
	env, err := cel.NewEnv(
		cel.Variable("self", cel.DynType), cel.Variable("oldSelf", cel.DynType), ext.Strings(),
	)
	if err != nil {
		return false
	}
	compiled, issues := env.Compile(rule)
	if issues.Err() != nil || !usesOnlyNewFields(compiled, known) {
		return false
	}
	program, err := env.Program(compiled, cel.CostLimit(absentCost))
	if err != nil {
		return false
	}
	absent := map[string]any{}
	for _, f := range s.Fields {
		if f.Default != nil {
			absent[escaped(f.Name)] = effectiveDefault(&f)
		}
	}
	out, _, err := program.Eval(map[string]any{"self": absent, "oldSelf": absent})
	return err == nil && out.Value() == true
}

// absentCost is the maximum cost of evaluating a rule in HoldsWithout, in CEL's cost units.
const absentCost = 1_000_000

// usesOnlyNewFields reports whether a rule uses self and oldSelf only to select fields that known lacks.
func usesOnlyNewFields(rule *cel.Ast, known *descriptor.Shape) bool {
	mentions := 0
	for _, e := range celast.MatchDescendants(celast.NavigateAST(rule.NativeRep()), celast.AllMatcher()) {
		if e.Kind() != celast.IdentKind || e.AsIdent() != "self" && e.AsIdent() != "oldSelf" {
			continue
		}
		mentions++
		if !selectsNewField(e, known) {
			return false
		}
	}
	return mentions > 0
}

// selectsNewField reports whether e, which is self or oldSelf, is used to select a field that known lacks. An example
// is self.resource.mtu, if known has resource but not mtu.
func selectsNewField(e celast.NavigableExpr, known *descriptor.Shape) bool {
	for in := known; in != nil; {
		parent, ok := e.Parent()
		if !ok || parent.Kind() != celast.SelectKind {
			return false
		}
		var field *descriptor.Field
		for i := range in.Fields {
			if escaped(in.Fields[i].Name) == parent.AsSelect().FieldName() {
				field = &in.Fields[i]
			}
		}
		if field == nil {
			return true
		}
		if field.List {
			return false
		}
		e = parent
		in = field.Shape
	}
	return false
}

// effectiveDefault returns the default of a field as rules see it.
func effectiveDefault(f *descriptor.Field) any {
	switch v := f.Default.(type) {
	case json.Number:
		x, _ := v.Float64() // it is a number
		if f.Type != descriptor.TypeFloat {
			return int64(x)
		}
		return x
	case string:
		if t, err := descriptor.ParseTime(v); err == nil && f.Type == descriptor.TypeTime {
			return t
		}
		return v
	default:
		return v
	}
}
