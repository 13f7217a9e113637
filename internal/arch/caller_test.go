package arch_test

import (
	"go/ast"
	"testing"
)

// TestTheCallerIsInTheContextAlone refuses functions with a parameter access.Caller: authorization, updatedBy and the audit
// log read the caller of the context, so a second one could differ from it.
func TestTheCallerIsInTheContextAlone(t *testing.T) {
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			f, ok := n.(*ast.FuncType)
			if !ok {
				return true
			}
			for _, p := range f.Params.List {
				if sel, ok := p.Type.(*ast.SelectorExpr); ok && sel.Sel.Name == "Caller" {
					if of, ok := sel.X.(*ast.Ident); ok && of.Name == "access" {
						t.Errorf("%s: a parameter access.Caller; use access.CallerFrom of the context", s.fset.Position(p.Pos()))
					}
				}
			}
			return true
		})
	}
}
