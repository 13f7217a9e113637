package arch_test

import (
	"go/ast"
	"strings"
	"testing"
)

// TestEveryPackageWithTestsLooksForLeakedGoroutines: its TestMain ends in
// leaktest.Main. A test that starts no goroutine itself may call what does.
func TestEveryPackageWithTestsLooksForLeakedGoroutines(t *testing.T) {
	looks, name := map[string]bool{}, map[string]string{}
	for _, s := range sources(t) {
		if !s.test || ignored(s.file) {
			continue
		}
		if looks[s.folder] = looks[s.folder] || endsInLeakCheck(s.file); name[s.folder] == "" || strings.HasSuffix(s.file.Name.Name, "_test") {
			name[s.folder] = s.file.Name.Name
		}
	}
	for folder, found := range looks {
		if !found {
			t.Errorf("%s has tests and no check that they end their goroutines; write this to %[1]s/main_test.go:\n\npackage %s\n\nimport (\n\t\"testing\"\n\n\t%q\n)\n\nfunc TestMain(m *testing.M) { leaktest.Main(m) }", folder, name[folder], module+"/internal/leaktest")
		}
	}
}

// ignored reports whether the file is never built here, as examples that are copied elsewhere.
func ignored(f *ast.File) bool {
	for _, g := range f.Comments {
		if g.Pos() < f.Package && strings.Contains(commentText(g), "//go:build ignore") {
			return true
		}
	}
	return false
}

// endsInLeakCheck reports whether the file has a TestMain whose last statement is leaktest.Main.
func endsInLeakCheck(f *ast.File) bool {
	for _, d := range f.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Name.Name != "TestMain" || len(f.Body.List) == 0 {
			continue
		}
		s, ok := f.Body.List[len(f.Body.List)-1].(*ast.ExprStmt)
		if !ok {
			continue
		}
		if c, ok := s.X.(*ast.CallExpr); ok && callee(c) == "leaktest.Main" {
			return true
		}
	}
	return false
}
