package kind

import (
	"context"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
)

// conjunction are the rules of a shape about one state as one program. It costs less than
// one for each rule, and is given no more of the object than the rules name.
type conjunction struct {
	program
	// whole says that the rules look at the object itself; else at these fields of it.
	whole  bool
	fields []ruledField
}

// ruledField is a field that rules name. tested says that they ask for nothing but
// whether it is there.
type ruledField struct {
	*Field
	tested bool
}

// conjunction compiles rules of a shape; nil if they are none together, as where one is
// no Boolean.
func (c *compiler) conjunction(s *Shape, rules []string) *conjunction {
	compiled, iss := c.env.Compile(strings.Join(rules, " && "))
	if iss.Err() != nil {
		return nil
	}
	out := &conjunction{}
	var err error
	if out.program, err = c.program(compiled); err != nil {
		return nil
	}
	out.look(s, ast.NavigateAST(compiled.NativeRep()))
	return out
}

// look notes the fields that an expression names.
func (c *conjunction) look(s *Shape, root ast.NavigableExpr) {
	for _, e := range ast.MatchDescendants(root, ast.AllMatcher()) {
		// With a dot before it, it is the object also where a macro gives the name to something else.
		if e.Kind() != ast.IdentKind || strings.TrimPrefix(e.AsIdent(), ".") != "self" {
			continue
		}
		in, ok := e.Parent()
		if !ok || in.Kind() != ast.SelectKind {
			c.whole, c.fields = true, nil
			return
		}
		of := in.AsSelect()
		for _, f := range s.fields {
			if f.escaped == of.FieldName() {
				c.add(f, of.IsTestOnly())
			}
		}
	}
}

func (c *conjunction) add(f *Field, tested bool) {
	at := slices.IndexFunc(c.fields, func(o ruledField) bool { return o.Field == f })
	if at < 0 {
		c.fields = append(c.fields, ruledField{f, tested})
		return
	}
	c.fields[at].tested = c.fields[at].tested && tested
}

// holds says whether all rules evaluate to true.
func (c *conjunction) holds(ctx context.Context, v *Violations, s *Shape, tree map[string]any) bool {
	self := self{}
	if c.whole {
		self.object = s.effective(tree)
	} else {
		self.object = c.effective(tree)
	}
	out, err := c.evaluate(ctx, v, &self)
	return err == nil && out == types.True
}

// effective is what [Shape.effective] has of the fields that the rules name. Where they
// ask only whether one is there, any value will do.
func (c *conjunction) effective(tree map[string]any) map[string]any {
	out := make(map[string]any, len(c.fields))
	for _, f := range c.fields {
		value, ok := f.valueIn(tree)
		switch {
		case ok && f.tested:
			out[f.escaped] = true
		case ok:
			out[f.escaped] = f.effective(value)
		}
	}
	return out
}

// self is the only variable of rules about one state.
type self struct{ object map[string]any }

// ResolveName is part of [cel.Activation].
func (s *self) ResolveName(name string) (any, bool) { return s.object, name == "self" }

// Parent is part of [cel.Activation].
func (s *self) Parent() cel.Activation { return nil }
