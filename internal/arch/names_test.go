package arch_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// oldNames are names of the API, of directives and of arguments that have been replaced.
// The API is frozen by its release: no old form stays beside a new one.
var oldNames = []struct {
	old *regexp.Regexp
	now string
}{
	{regexp.MustCompile(`@index\b`), "@filterable"},
	{regexp.MustCompile(`@value\(`), "@stored(as:)"},
	{regexp.MustCompile(`@(since|until)\b`), "nothing: a released version is its frozen file"},
	{regexp.MustCompile(`@map\([^)]`), "@map with @constraint"},
	{regexp.MustCompile(`@column\(name:`), "@column(title:)"},
	{regexp.MustCompile(`\bguard: (true|false)`), "guarded"},
	{regexp.MustCompile(`\b[sS]ecretData\b`), "reveal, RevealedValues"},
	{regexp.MustCompile(`\bblockers ?[({] ?(first|after|last|nodes|edges|totalCount)`), "blockedBy"},
	{regexp.MustCompile(`\[KindIndex!`), "KindFilterableField"},
	{regexp.MustCompile(`\bInt64(List)?Filter\b|: \[?Int64\b`), "SafeInt"},
	{regexp.MustCompile(`extensions\.key\b`), "extensions.setting"},
	{regexp.MustCompile(`apply [^\n]*--force\b`), "--ignore-revision"},
	{regexp.MustCompile(`sluice schema\b|--schema\b|SLUICE_SCHEMA\b`), "sluice catalogue, --catalogue"},
	{regexp.MustCompile(`hide-schema\b`), "hide-introspection"},
	{regexp.MustCompile(`direction: (UP|DOWN)\b`), "DEPENDENCIES, DEPENDENTS"},
	{regexp.MustCompile(`\btotalCount: Int!`), "totalCount: Int @semanticNonNull"},
	{regexp.MustCompile(`\bkinds: \[Kind!\]!`), "kinds: [Kind!] @semanticNonNull"},
	{regexp.MustCompile(`\bstatus ?\{ ?id\b`), "cloudId, @stored(as: \"id\")"},
	{regexp.MustCompile(`\bSetFinalizers\b|\bFinalizersRequest\b`), "PatchMetadata with addFinalizers and removeFinalizers"},
}

func TestNoOldNameIsLeft(t *testing.T) {
	root := filepath.Join("..", "..")
	made := filepath.Join(root, "e2e", "clients", "genqlient", "schema.graphql") // a copy that a test made
	extensions := []string{".go", ".md", ".graphqls", ".graphql", ".mjs", ".js", ".jsx", ".ts", ".txt", ".yaml", ".json"}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || strings.HasPrefix(d.Name(), ".") && path != root):
			return fs.SkipDir
		case d.IsDir(), !slices.Contains(extensions, filepath.Ext(path)), d.Name() == "names_test.go", strings.HasPrefix(path, made):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, n := range oldNames {
			if at := n.old.FindIndex(text); at != nil {
				t.Errorf("%s:%d: %q; now it is %s", path, 1+strings.Count(string(text[:at[0]]), "\n"), text[at[0]:at[1]], n.now)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
