package state

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestVerdictOf_KnowsEachInternalKind reads the names of internal kinds from the sources: a new one needs a verdict.
func TestVerdictOf_KnowsEachInternalKind(t *testing.T) {
	internal := regexp.MustCompile(`^_[a-z]{3,}\.?$`)
	found := map[string]bool{}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		skipped := strings.HasSuffix(path, "_test.go") || strings.Contains(path, "backendtest") ||
			strings.Contains(path, "owner/standard") // it has names of fields
		if err != nil || skipped || !strings.HasSuffix(path, ".go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
				if text, err := strconv.Unquote(literal.Value); err == nil && internal.MatchString(text) {
					found[text] = true
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for kind := range found {
		if verdictOf(kind) == unknown {
			t.Errorf("the internal kind %s has no verdict: is it moved with a store, or left?", kind)
		}
	}
	for _, kind := range []string{catalogueKind, controllersKind, reconcileKind, bootstrapKind} {
		if !found[kind] {
			t.Errorf("%s is a kind of nothing", kind)
		}
	}
	if verdictOf("_sensitive.Net") != movedSensitive || verdictOf("Net") != moved || verdictOf("_new") != unknown {
		t.Error("resources, sensitive values and unknown kinds are mixed up")
	}
}
