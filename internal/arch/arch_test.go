package arch_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/sluicegw/sluice"

// rule says what the packages under a folder may import of this module. The
// first rule whose folder matches counts.
type rule struct {
	folder string
	may    []string
	why    string
}

var rules = []rule{
	{"backend/backendtest", []string{"backend", "backend/memory"}, "the suite knows the contract and its model, no other driver"},
	{"backend/service", []string{"backend", "backend/hub", "backend/manifest"}, "the service works over any store"},
	{"backend/hub", []string{"backend"}, "the hub relays the changes of any store"},
	{"backend/manifest", nil, "a manifest is text; it knows no kind and no store"},
	{"backend/memory", []string{"backend"}, "drivers never know each other"},
	{"backend/bolt", []string{"backend"}, "drivers never know each other"},
	{"backend/redis", []string{"backend"}, "drivers never know each other"},
	{"backend", nil, "the contract stands alone"},
	{"graph/client", nil, "other people's programs import it: it must not bring the gateway"},
	{"graph/scalar", nil, "the API's own scalars are numbers and text"},
	{"graph/loader", []string{"backend", "backend/service"}, "loaders batch reads of the service for every version of the API"},
	{"graph/v1", []string{"backend", "backend/service", "graph/scalar", "graph/v1"}, "generated code knows descriptors and the service's types"},
	{"graph/stream", nil, "what a transport and a resolver tell each other knows neither"},
	{"graph/document", nil, "documents are text until they are executed"},
	{"graph/transport", []string{"backend/service", "graph/document", "graph/stream"}, "transports carry operations and know no kind"},
	{"graph/console", []string{"backend"}, "the page makes examples of descriptors and asks the API for the rest"},
	{"graph/server", []string{"backend", "backend/service", "graph", "resolvers"}, "the edge knows no store"},
	{"resolvers", []string{"backend", "backend/service", "graph/v1", "graph/loader", "graph/scalar", "graph/stream"}, "resolvers delegate to the service"},
	{"cmd", []string{"backend", "backend/bolt", "backend/redis", "backend/service", "backend/manifest", "graph", "resolvers", "internal"}, "only commands name a concrete driver"},
	{"internal/sdl", []string{"backend"}, "the reader of annotated SDL is below the generator"},
	{"internal/generator", []string{"backend", "backend/service", "internal/sdl"}, "the generator never knows what it generated"},
	{"internal/redistest", nil, "it starts servers and knows nothing of what runs on them"},
	{"internal/arch", nil, "it reads files only"},
	{"e2e", []string{"backend", "backend/manifest", "graph/client", "backend/bolt", "backend/service", "graph/v1", "graph/server"}, "end-to-end tests use what a user has, and the store to play a controller"},
	{"examples", []string{"graph/client"}, "examples show what other people's programs may use"},
}

// testsMay are imports that tests may make besides those of their package.
var testsMay = map[string][]string{
	"backend":            {"backend/backendtest", "backend/memory", "backend/bolt"},
	"backend/bolt":       {"backend/backendtest", "backend/memory"},
	"backend/memory":     {"backend/backendtest"},
	"backend/redis":      {"backend/backendtest", "backend/memory", "backend/service", "internal/redistest"},
	"backend/hub":        {"backend/backendtest", "backend/memory"},
	"e2e":                {"internal/redistest"},
	"backend/service":    {"backend/memory", "graph/v1"},
	"graph/server":       {"backend/memory", "backend/bolt", "graph/v1", "graph/client"},
	"graph/console":      {"graph/v1"},
	"graph/transport":    {"backend", "backend/memory", "backend/bolt", "graph/v1", "graph/loader", "resolvers"},
	"resolvers":          {"backend/memory", "graph/transport", "graph/document"},
	"graph/v1":           {"backend/memory", "backend/service"},
	"internal/generator": {"internal/sdl"},
}

var bannedNames = []string{"util", "utils", "common", "helpers", "tools", "types", "misc", "shared"}

// source is one Go file of the module.
type source struct {
	path, folder string
	file         *ast.File
	fset         *token.FileSet
	lines        int
	generated    bool
	test         bool
}

func sources(t *testing.T) []source {
	t.Helper()
	root := filepath.Join("..", "..")
	var out []source
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, p)
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			if rel != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "node_modules") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(rel, ".go") {
			return nil
		}
		text, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, rel, text, parser.ParseComments)
		if err != nil {
			return err
		}
		out = append(out, source{
			path: rel, folder: path.Dir(rel), file: f, fset: fset, lines: bytes.Count(text, []byte("\n")),
			generated: ast.IsGenerated(f), test: strings.HasSuffix(rel, "_test.go"),
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out) < 10 {
		t.Fatalf("only %d files found under %s", len(out), root)
	}
	return out
}

func under(folder, parent string) bool {
	return folder == parent || strings.HasPrefix(folder, parent+"/")
}

func TestImportsPointDown(t *testing.T) {
	for _, s := range sources(t) {
		i := slices.IndexFunc(rules, func(r rule) bool { return under(s.folder, r.folder) })
		if i < 0 {
			if s.folder != "." {
				t.Errorf("%s: no rule for this folder; the layout is fixed, see internal/arch", s.path)
			}
			continue
		}
		r := rules[i]
		may := append([]string{r.folder}, r.may...)
		if s.test {
			may = append(may, testsMay[r.folder]...)
		}
		for _, imp := range s.file.Imports {
			name, _ := strconv.Unquote(imp.Path.Value)
			local, ok := strings.CutPrefix(name, module+"/")
			if !ok || slices.ContainsFunc(may, func(m string) bool { return allowed(local, m) }) {
				continue
			}
			t.Errorf("%s imports %s: %s", s.path, local, r.why)
		}
	}
}

// allowed: "backend" means the contract alone, other folders all below them.
func allowed(local, may string) bool {
	if may == "backend" {
		return local == "backend"
	}
	return under(local, may)
}

func TestHandWrittenFilesKeepTheHouseStyle(t *testing.T) {
	documented := map[string]bool{}
	for _, s := range sources(t) {
		if s.file.Doc != nil {
			documented[s.folder] = true
		}
		if s.generated {
			continue
		}
		if s.lines > 600 {
			t.Errorf("%s has %d lines; split it by noun or concern at 600", s.path, s.lines)
		}
		if slices.Contains(bannedNames, s.file.Name.Name) && s.path != "tools.go" {
			t.Errorf("%s: package %s says nothing about what is in it", s.path, s.file.Name.Name)
		}
		for _, imp := range s.file.Imports {
			if imp.Name != nil && imp.Name.Name == "." {
				t.Errorf("%s: dot import of %s", s.path, imp.Path.Value)
			}
		}
		for _, d := range s.file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil && d.Name.Name == "init" {
					t.Errorf("%s: func init; construct what you need where you need it", s.path)
				}
			case *ast.GenDecl:
				if d.Tok == token.VAR && !s.test {
					checkVars(t, s, d)
				}
			}
		}
	}
	for _, s := range sources(t) {
		if !s.test && !s.generated && !documented[s.folder] {
			t.Errorf("%s: package %s has no package comment", s.folder, s.file.Name.Name)
			documented[s.folder] = true
		}
	}
}

// checkVars accepts package variables that nobody changes: sentinels, compiled
// expressions, interface assertions, embedded files and what the linker sets.
func checkVars(t *testing.T, s source, d *ast.GenDecl) {
	t.Helper()
	for _, spec := range d.Specs {
		v := spec.(*ast.ValueSpec)
		embedded := d.Doc != nil && strings.Contains(d.Doc.Text()+commentText(d.Doc), "go:embed")
		for i, name := range v.Names {
			if name.Name == "_" || embedded || s.path == "cmd/sluice/version.go" {
				continue
			}
			if i < len(v.Values) {
				if call, ok := v.Values[i].(*ast.CallExpr); ok && slices.Contains([]string{"errors.New", "regexp.MustCompile", "fmt.Errorf"}, callee(call)) {
					continue
				}
			}
			t.Errorf("%s: package variable %s; pass state in through a Config", s.fset.Position(name.Pos()), name.Name)
		}
	}
}

func commentText(g *ast.CommentGroup) string {
	var b strings.Builder
	for _, c := range g.List {
		b.WriteString(c.Text)
	}
	return b.String()
}

func callee(c *ast.CallExpr) string {
	sel, ok := c.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	if x, ok := sel.X.(*ast.Ident); ok {
		return x.Name + "." + sel.Sel.Name
	}
	return ""
}
