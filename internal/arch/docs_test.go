package arch_test

import (
	"errors"
	"go/ast"
	"go/build"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	code = regexp.MustCompile("`[^`\n]+`")
	link = regexp.MustCompile(`\]\(([^)#\s]*)(#[^)\s]*)?\)`)
	// inTree matches what is written as a path from the root of the repository.
	inTree = regexp.MustCompile(`^(backend|cmd|docs|e2e|examples|graph|internal|resolvers|schema)/[\w./-]+$`)
	// member matches a method, a field or a function: Hub.publish, storekit.Evaluate.
	member   = regexp.MustCompile(`^\w+(\.[A-Za-z]\w*){1,2}$`)
	fileName = regexp.MustCompile(`\.(go|md|graphqls|graphql|jsonl|mjs|yml|yaml|lua)$`)
	// shape is a step of a walk, with the function that makes it: (7: `encode`).
	shape    = regexp.MustCompile(`\(\d+:[^)]*\)`)
	function = regexp.MustCompile("`([a-z]\\w*)`")
	// punctuation is what GitHub leaves out of anchors.
	punctuation = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// TestTheDocsNameWhatThereIs holds the paths and links of all documents, and the
// Go names in the pages about code, against the tree.
func TestTheDocsNameWhatThereIs(t *testing.T) {
	root := filepath.Join("..", "..")
	documents, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	pagesOfCode := []string{"architecture.md", "contributing.md", "dependencies.md"}
	declared, files := names(t), baseNames(t, root)
	for _, path := range append(documents, filepath.Join(root, "README.md")) {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		namesCode := slices.Contains(pagesOfCode, filepath.Base(path))
		exists := func(folder, name string) bool {
			_, err := os.Stat(filepath.Join(folder, filepath.FromSlash(name)))
			return err == nil
		}
		for _, l := range link.FindAllStringSubmatch(string(raw), -1) {
			if l[1] != "" && !strings.Contains(l[1], "://") && !exists(filepath.Dir(path), l[1]) {
				t.Errorf("%s: the link to %s is dead", path, l[1])
			}
			if l[2] != "" && !strings.Contains(l[1], "://") && !heading(t, filepath.Join(filepath.Dir(path), l[1]), path, l[2][1:]) {
				t.Errorf("%s: the link to %s%s leads to no heading", path, l[1], l[2])
			}
		}
		for _, step := range shape.FindAllString(string(raw), -1) {
			for _, f := range function.FindAllStringSubmatch(step, -1) {
				if !declared[f[1]] {
					t.Errorf("%s: no function is named %s", path, f[1])
				}
			}
		}
		for _, quoted := range code.FindAllString(string(raw), -1) {
			name := strings.Trim(quoted, "`")
			switch {
			case inTree.MatchString(name):
				if !exists(root, name) && !declared[strings.TrimPrefix(name, "backend/")] {
					t.Errorf("%s: there is no %s", path, name)
				}
			case !namesCode:
			case fileName.MatchString(name):
				if !slices.ContainsFunc(files, func(file string) bool { ok, _ := filepath.Match(filepath.Base(name), file); return ok }) {
					t.Errorf("%s: there is no file %s", path, name)
				}
			case member.MatchString(name) && !declared[name]:
				t.Errorf("%s: nothing is named %s", path, name)
			}
		}
	}
}

// heading reports whether a document has the heading of an anchor; a link without a
// document is to its own.
func heading(t *testing.T, to, own, anchor string) bool {
	t.Helper()
	if info, err := os.Stat(to); err == nil && info.IsDir() {
		to = own
	}
	raw, err := os.ReadFile(to)
	if err != nil {
		return false
	}
	return anchors(string(raw))[anchor]
}

// anchors are those of the headings of a document, as GitHub makes them: in lower
// case, without punctuation, hyphens for spaces, and a number for each that is there
// already.
func anchors(text string) map[string]bool {
	out, count, fenced := map[string]bool{}, map[string]int{}, false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
		}
		title, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " ")
		if fenced || !ok || !strings.HasPrefix(line, "#") {
			continue
		}
		anchor := strings.ReplaceAll(punctuation.ReplaceAllString(strings.ToLower(strings.TrimSpace(title)), ""), " ", "-")
		count[anchor]++
		if n := count[anchor] - 1; n > 0 {
			anchor += "-" + strconv.Itoa(n)
		}
		out[anchor] = true
	}
	return out
}

// go build passes over a folder all of whose files need a build tag, without a word.
func TestTheReadmeNamesTheExamplesThatAreNotBuilt(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	folders, err := filepath.Glob("../../examples/*")
	if err != nil || len(folders) == 0 {
		t.Fatalf("%q %v", folders, err)
	}
	for _, folder := range folders {
		var none *build.NoGoError
		files, _ := filepath.Glob(filepath.Join(folder, "*.go"))
		if _, err := build.ImportDir(folder, 0); len(files) == 0 || !errors.As(err, &none) {
			continue
		}
		if name := "examples/" + filepath.Base(folder); !strings.Contains(string(readme), "`go build ./...` leaves out `"+name+"`") {
			t.Errorf("%s is not built, and the README does not say so", name)
		}
	}
}

func TestAnchorsAreThoseOfGitHub(t *testing.T) {
	text := "# Check, print, compare\n## What was wrong, and where?\n```sh\n# no heading\n```\n## `a_b` and c-d\n## Twice\n## Twice\n"
	got := anchors(text)
	want := []string{"a_b-and-c-d", "check-print-compare", "twice", "twice-1", "what-was-wrong-and-where"}
	if all := slices.Sorted(maps.Keys(got)); !slices.Equal(all, want) {
		t.Errorf("anchors %v, want %v", all, want)
	}
}

// names are what the module declares: package.Name, Type.Method, package.Type.Method,
// and fields like methods; functions by their bare names as well.
func names(t *testing.T) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	member := func(pkg string, typ ast.Expr, name string) {
		if p, ok := typ.(*ast.StarExpr); ok {
			typ = p.X
		}
		if id, ok := typ.(*ast.Ident); ok {
			out[id.Name+"."+name], out[pkg+"."+id.Name+"."+name] = true, true
		}
	}
	for _, s := range sources(t) {
		if s.test && s.file.Name.Name != "enginetest" {
			continue
		}
		pkg := s.file.Name.Name
		for _, d := range s.file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv != nil {
					member(pkg, d.Recv.List[0].Type, d.Name.Name)
					continue
				}
				out[d.Name.Name], out[pkg+"."+d.Name.Name] = true, true
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					ts, ok := spec.(*ast.TypeSpec)
					if !ok {
						continue
					}
					out[pkg+"."+ts.Name.Name] = true
					var fields *ast.FieldList
					switch typ := ts.Type.(type) {
					case *ast.StructType:
						fields = typ.Fields
					case *ast.InterfaceType:
						fields = typ.Methods
					default:
						continue
					}
					for _, f := range fields.List {
						for _, name := range f.Names {
							member(pkg, ts.Name, name.Name)
						}
					}
				}
			}
		}
	}
	return out
}

// baseNames are the names of all files, without their folders.
func baseNames(t *testing.T, root string) (out []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && d.Name() == "node_modules" {
			return filepath.SkipDir
		}
		out = append(out, d.Name())
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
