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
	"sync"
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
	{"backend/backendtest", []string{"backend", "backend/storekit", "backend/memory"}, "the suite knows the contract and its model, no other driver"},
	{"backend/descriptor", nil, "a kind is data; it knows no store and no service"},
	{"backend/storekit", []string{"backend"}, "the kit of drivers knows the contract and no driver"},
	{"backend/budget", nil, "a budget is numbers; it knows nothing of what is counted"},
	{"backend/service/access", []string{"backend", "backend/descriptor", "backend/service/failure", "internal/span"}, "who may do what is judged by kind, verb and key alone"},
	{"backend/service/failure", []string{"backend", "backend/descriptor", "backend/hub"}, "an error names what failed below and the field where it did, and nothing above"},
	{"backend/service/jsontree", nil, "a tree is JSON; it knows no kind"},
	{"backend/service/kind", []string{"backend", "backend/body", "backend/budget", "backend/descriptor", "backend/index", "backend/service/failure", "backend/service/jsontree"}, "a compiled kind judges trees; it knows no verb"},
	{"backend/service/owner/remote", []string{"backend", "backend/service/access", "backend/service/owner", "schema/service", "internal/wait", "internal/span"}, "a protocol carries calls to an owner; it knows no kind"},
	{"backend/service/owner/standard", []string{"backend", "backend/manifest", "backend/service/access", "backend/service/owner", "internal/wait"}, "standard methods become the contract of an owner; it knows no kind of a catalogue"},
	{"backend/service/owner/kit", []string{"backend", "backend/descriptor", "backend/service/owner"}, "promises are tested through the contract, with specs made of descriptors"},
	{"backend/service/owner/ownertest", []string{"backend", "backend/service/owner"}, "a service for tests keeps resources in memory and knows no gateway"},
	{"backend/service/owner", []string{"backend"}, "what a resource service offers, whatever the protocol"},
	{"backend/service/policy", []string{"backend", "backend/descriptor", "backend/hub", "backend/index", "backend/service/access", "backend/service/failure", "backend/service/kind"}, "the roles and bindings belong to the gateway; it knows no query"},
	{"backend/service/query/filter", []string{"backend", "backend/body", "backend/descriptor", "backend/index", "backend/service/failure", "backend/service/jsontree", "backend/service/kind"}, "a filter is conditions on rows; nothing is read here"},
	{"backend/service/query/plan", []string{"backend", "backend/descriptor", "backend/index", "backend/service/access", "backend/service/failure", "backend/service/kind", "backend/service/query/filter"}, "the planner measures trees and reads nothing"},
	{"backend/service/query/page", []string{"backend", "backend/body", "backend/budget", "backend/index", "backend/service/failure", "backend/service/kind", "backend/service/query/filter", "backend/service/query/plan"}, "what executes plans makes none"},
	{"backend/service/query", []string{"backend", "backend/body", "backend/budget", "backend/descriptor", "backend/index", "backend/service/access", "backend/service/failure", "backend/service/kind", "backend/service/policy", "backend/service/dependency"}, "who reads writes nothing, and knows of changes only how far the targets of references are"},
	{"backend/service/change", []string{"backend", "backend/body", "backend/budget", "backend/descriptor", "backend/hub", "backend/index", "backend/service/access", "backend/service/failure", "backend/service/kind", "backend/service/policy", "backend/service/query"}, "streams read and never write"},
	{"backend/audit", []string{"backend", "backend/hub", "backend/service/access", "backend/service/failure", "backend/service/kind", "internal/wait", "internal/span"}, "what was done is read off the log, and never changed"},
	{"backend/service/dependency", []string{"backend", "backend/descriptor", "backend/service/kind"}, "what waits for what is decided from what was read; nothing is read here"},
	{"backend/service/sender", []string{"backend", "backend/budget", "backend/hub", "backend/service/access", "internal/wait"}, "a batch is bytes to its sender; it knows no kind"},
	{"backend/service/mirror", []string{"backend", "backend/body", "backend/budget", "backend/descriptor", "backend/hub", "backend/service/access", "backend/service/dependency", "backend/service/failure", "backend/service/jsontree", "backend/service/kind", "backend/service/owner", "backend/service/reconcile", "backend/service/sender", "internal/wait"}, "what services own is mirrored below the verbs, which ask through it"},
	{"backend/service/reconcile", []string{"backend", "backend/catalogue", "backend/descriptor", "backend/hub", "backend/index", "backend/service/dependency", "backend/service/failure", "backend/service/jsontree", "backend/service/kind", "backend/service/sender", "internal/wait", "internal/span", "backend/service/access"}, "the work that follows from changes knows no verb and no query"},
	{"backend/service/servicetest", []string{"backend", "backend/body", "backend/bolt", "backend/catalogue", "backend/descriptor", "backend/hub", "backend/index", "backend/memory", "backend/redis", "backend/service", "graph/kinds/kindstest", "internal/redistest"}, "the worlds of tests are services over any store; the kinds that give rights are those of the catalogue"},
	{"backend/service", []string{"backend", "backend/body", "backend/budget", "backend/catalogue", "backend/descriptor", "backend/hub", "backend/index", "backend/keyring", "backend/manifest", "internal/wait", "internal/span"}, "the verbs stand on all others, and on any store and any kinds"},
	{"backend/catalogue", []string{"backend", "backend/body", "backend/descriptor", "internal/wait"}, "the gate compares catalogues through the store contract"},
	{"backend/body", []string{"backend", "backend/descriptor", "internal/slab"}, "a body is bytes under a descriptor; it knows no store"},
	{"backend/index", []string{"backend", "backend/body", "backend/hub", "internal/wait"}, "the index keeps what the hub tells and the store has; it knows no query"},
	{"backend/state", []string{"backend", "backend/catalogue", "backend/keyring", "internal/wait"}, "everything of a store is moved through the contract; it knows no kind"},
	{"backend/keyring/kms", []string{"schema/kms"}, "a KMS encrypts some bytes; it knows no keyring"},
	{"backend/keyring", []string{"backend"}, "keys encrypt bodies; they know no kind and no store"},
	{"backend/hub", []string{"backend", "internal/wait"}, "the hub relays the changes of any store"},
	{"backend/manifest", []string{"backend/descriptor"}, "a manifest is text; it knows no kind and no store"},
	{"backend/memory", []string{"backend", "backend/storekit"}, "drivers never know each other"},
	{"backend/bolt", []string{"backend", "backend/storekit", "internal/slab", "internal/span"}, "drivers never know each other"},
	{"backend/redis", []string{"backend", "backend/storekit", "internal/wait", "internal/span"}, "drivers never know each other"},
	{"backend/traced", []string{"backend", "internal/span"}, "calls are traced through the contract, whatever the driver"},
	{"backend", nil, "the contract stands alone"},
	{"graph/client", []string{"internal/wait"}, "other people's programs import it: it must not bring the gateway"},
	{"graph/kinds/kindstest", []string{"backend", "backend/descriptor", "backend/manifest", "graph/kinds", "schema"}, "tests get the catalogue as data"},
	{"graph/kinds", []string{"backend", "backend/descriptor", "schema"}, "SDL becomes descriptors and the API; nothing executes here"},
	{"graph/release", []string{"backend/catalogue", "backend/descriptor", "graph/kinds"}, "a released version is files; nothing executes here"},
	{"graph/loader", []string{"backend", "backend/service/access", "backend/service/query"}, "loaders batch reads of the service"},
	{"graph/engine/enginetest", []string{"backend", "backend/descriptor", "backend/service", "graph/core", "graph/engine", "graph/kinds", "resolvers"}, "the second executor stands beside the engine, for tests"},
	{"graph/coercion", []string{"backend/descriptor", "backend/service/failure", "backend/service/jsontree", "graph/kinds", "internal/spelling"}, "values are coerced by the schema, whoever uses them"},
	{"graph/deprecation", []string{"graph/kinds"}, "what is deprecated is found by the schema alone"},
	{"graph/engine", []string{"backend", "backend/body", "backend/budget", "backend/descriptor", "backend/service", "graph/answer", "graph/coercion", "graph/kinds", "graph/loader", "graph/stream", "internal/slab", "internal/span"}, "the engine executes every kind and knows no store and no transport"},
	{"graph/core", []string{"backend", "backend/descriptor", "graph/engine"}, "generated code knows the marks of the engine and no kind"},
	{"graph/answer", []string{"backend/service/query"}, "answers are kept by what they were read from, whoever makes and sends them"},
	{"graph/stream", []string{"backend/budget", "backend/service/change", "backend/service/failure", "graph/answer", "internal/span"}, "subscriptions share executions and queues, whatever executes and carries them"},
	{"graph/transport", []string{"backend/budget", "backend/service/access", "backend/service/failure", "graph/answer", "graph/stream"}, "transports carry operations and know no kind"},
	{"graph/identity", []string{"backend/service/access", "backend/service/failure", "internal/certificate", "internal/settings", "internal/wait"}, "who asks is known before anything is asked"},
	{"graph/console", []string{"backend", "backend/descriptor", "backend/service/access"}, "the page makes examples of descriptors, says who asks, and asks the API for the rest"},
	{"graph/proto", []string{"backend/descriptor", "graph/kinds/kindstest"}, "messages are made of descriptors; nothing is served here"},
	{"graph/rpc", []string{"backend", "backend/body", "backend/budget", "backend/descriptor", "backend/service", "graph/proto", "internal/span"}, "methods are carried out by the service; who may call them is known before"},
	{"graph/server", []string{"backend", "backend/budget", "backend/catalogue", "backend/descriptor", "backend/service", "graph", "resolvers", "internal/span"}, "the edge knows no store"},
	{"resolvers", []string{"backend", "backend/budget", "backend/descriptor", "backend/service", "graph/core", "graph/engine", "graph/loader"}, "resolvers delegate to the service"},
	{"schema", nil, "SDL files and nothing else"},
	{"cmd/sluice/terminal", nil, "streams know no command and no gateway"},
	{"cmd/sluice/version", nil, "a version is text"},
	{"cmd/sluice/config", []string{"backend/manifest", "backend/service/access", "backend/service/owner/remote", "backend/service/owner/standard", "graph/identity", "graph/server", "internal/certificate", "internal/spelling", "internal/wait"}, "settings are read before anything is opened"},
	{"cmd/sluice/credential", []string{"cmd/sluice/config", "graph/client", "internal/settings", "internal/wait"}, "contexts and logins are files; they know no command"},
	{"cmd/sluice/input", []string{"backend/descriptor", "backend/manifest", "graph/client"}, "what people write is parsed without flags and streams"},
	{"cmd/sluice/output", []string{"backend/descriptor", "backend/manifest", "graph/client"}, "resources are written without flags"},
	{"cmd/sluice/exit", []string{"cmd/sluice/output", "cmd/sluice/terminal", "graph/client"}, "an error is told without knowing the command"},
	{"cmd/sluice/command", []string{"cmd/sluice/config", "cmd/sluice/exit", "cmd/sluice/output", "cmd/sluice/terminal", "graph/client"}, "what all commands share knows none of them"},
	{"cmd/sluice/resource", []string{"cmd/sluice/exit", "cmd/sluice/output", "graph/client"}, "arguments name resources, whatever the command does with them"},
	{"cmd/sluice/remote", []string{"cmd/sluice/command", "cmd/sluice/config", "cmd/sluice/credential", "cmd/sluice/exit", "cmd/sluice/input", "cmd/sluice/output", "cmd/sluice/resource", "cmd/sluice/version", "graph/client"}, "a connection knows no command"},
	{"cmd/sluice/document", []string{"cmd/sluice/command", "cmd/sluice/exit", "cmd/sluice/input", "cmd/sluice/output", "cmd/sluice/resource", "cmd/sluice/terminal", "graph/client", "internal/wait"}, "manifests are read and compared, and nothing is written"},
	{"cmd/sluice/await", []string{"cmd/sluice/exit", "cmd/sluice/output", "cmd/sluice/resource", "cmd/sluice/terminal", "graph/client"}, "waiting reads streams, for whichever command waits"},
	{"cmd/sluice/commandtest", []string{"cmd/sluice/command", "cmd/sluice/config", "cmd/sluice/credential", "cmd/sluice/remote", "cmd/sluice/terminal"}, "tests of commands bring the commands that they run"},
	{"cmd/sluice/read", []string{"cmd/sluice/await", "cmd/sluice/command", "cmd/sluice/config", "cmd/sluice/credential", "cmd/sluice/document", "cmd/sluice/exit", "cmd/sluice/input", "cmd/sluice/output", "cmd/sluice/remote", "cmd/sluice/resource", "cmd/sluice/terminal", "backend/manifest", "graph/client"}, "commands that read know none that write"},
	{"cmd/sluice/write", []string{"cmd/sluice/await", "cmd/sluice/command", "cmd/sluice/config", "cmd/sluice/credential", "cmd/sluice/document", "cmd/sluice/exit", "cmd/sluice/input", "cmd/sluice/output", "cmd/sluice/remote", "cmd/sluice/resource", "cmd/sluice/terminal", "backend/manifest", "graph/client", "internal/wait"}, "commands that write stand beside those that read"},
	{"cmd/sluice/auth", []string{"cmd/sluice/command", "cmd/sluice/config", "cmd/sluice/credential", "cmd/sluice/document", "cmd/sluice/exit", "cmd/sluice/input", "cmd/sluice/output", "cmd/sluice/remote", "cmd/sluice/resource", "cmd/sluice/terminal", "backend/descriptor", "backend/service/access", "graph/client"}, "contexts and logins stand beside the commands that use them"},
	{"cmd/sluice/reload", []string{"backend/catalogue", "backend/service/failure", "graph/client"}, "the socket and the folder know no gateway"},
	{"cmd/sluice/sdl", []string{"cmd/sluice/exit", "backend/catalogue", "backend/descriptor", "graph/kinds", "graph/release"}, "a catalogue is read without a gateway"},
	{"cmd/sluice/gateway", []string{"cmd/sluice/config", "cmd/sluice/exit", "cmd/sluice/input", "cmd/sluice/reload", "cmd/sluice/sdl", "cmd/sluice/terminal", "cmd/sluice/version", "backend", "backend/audit", "backend/bolt", "backend/catalogue", "backend/descriptor", "backend/hub", "backend/index", "backend/keyring", "backend/memory", "backend/redis", "backend/service", "backend/state", "graph/identity", "graph/kinds", "graph/proto", "graph/server", "internal/certificate", "internal/wait", "internal/span", "backend/traced"}, "the gateway knows no command; it alone names concrete drivers"},
	{"cmd/sluice/operate", []string{"cmd/sluice/command", "cmd/sluice/config", "cmd/sluice/credential", "cmd/sluice/exit", "cmd/sluice/gateway", "cmd/sluice/input", "cmd/sluice/output", "cmd/sluice/reload", "cmd/sluice/remote", "cmd/sluice/sdl", "cmd/sluice/terminal", "backend", "backend/catalogue", "backend/descriptor", "backend/keyring", "backend/manifest", "backend/service/access", "backend/service/owner", "backend/state", "graph/client", "graph/identity", "graph/kinds", "graph/proto", "graph/release"}, "operators run a gateway, ask one, or look at a store that it opens or a service beside it"},
	{"cmd/sluice", nil, "main lists the commands; each is in a package below"},
	{"cmd/sluicerelease", nil, "a release is made of files and of what the go command builds"},
	{"cmd/sluicegen", []string{"graph/kinds", "graph/release"}, "the generator never knows what it generated"},
	{"internal/certificate", nil, "it knows certificates, and not what they are for"},
	{"internal/wait", nil, "it waits, for whatever"},
	{"internal/settings", nil, "it knows files and none of their fields"},
	{"internal/slab", nil, "it knows memory and no value"},
	{"internal/spelling", nil, "it knows names and not what has them"},
	{"internal/span", nil, "it knows traces, and nothing of what is traced"},
	{"internal/heaptest", nil, "it measures memory and knows no value"},
	{"internal/leaktest", nil, "it knows goroutines and nothing of what starts them"},
	{"internal/redistest", nil, "it starts servers and knows nothing of what runs on them"},
	{"internal/arch", nil, "it reads files only"},
	{"e2e", []string{"backend/manifest", "graph/client", "graph/kinds/kindstest"}, "end-to-end tests use what a user has"},
	{"examples/quota", []string{"backend", "backend/service", "graph/core", "graph/engine"}, "it is copied to resolvers"},
	{"examples/service", []string{"backend", "backend/service/access", "backend/service/owner"}, "a resource service implements the contract in Go's types, and knows nothing of a gateway"},
	{"examples", []string{"graph/client"}, "examples show what other people's programs may use"},
}

// testHelpers are packages that every test may import.
var testHelpers = []string{"internal/heaptest", "internal/leaktest"}

// testsMay are imports that tests may make besides those of their package and testHelpers.
var testsMay = map[string][]string{
	"backend":           {"backend/backendtest", "backend/memory", "backend/bolt"},
	"backend/bolt":      {"backend/backendtest", "backend/memory"},
	"backend/audit":     {"backend/memory", "internal/redistest"},
	"backend/catalogue": {"backend/memory"},
	"backend/memory":    {"backend/backendtest"},
	"backend/redis":     {"backend/backendtest", "backend/body", "backend/descriptor", "backend/memory", "backend/service", "internal/redistest"},
	"backend/hub":       {"backend/backendtest", "backend/memory"},
	"backend/keyring":   {"backend/keyring/kms"},
	"backend/index":     {"backend/memory", "backend/bolt", "backend/redis", "internal/redistest"},
	"backend/state":     {"backend/descriptor", "backend/memory", "backend/bolt", "backend/redis", "internal/redistest"},
	"backend/traced":    {"backend/backendtest", "backend/memory"},
	"backend/service":   {"backend/memory", "backend/bolt", "backend/redis", "graph/kinds/kindstest", "internal/redistest"},
	// Queries and streams are tested through a service.
	"backend/service/change":       {"backend/descriptor", "backend/hub", "backend/memory", "backend/bolt", "backend/redis", "backend/service", "internal/redistest"},
	"backend/service/query":        {"backend/descriptor", "backend/hub", "backend/memory", "backend/bolt", "backend/redis", "backend/service", "internal/redistest"},
	"backend/service/query/filter": {"backend/descriptor", "backend/memory", "backend/service"},
	"backend/service/query/page":   {"backend/descriptor", "backend/memory", "backend/service"},
	"backend/service/query/plan":   {"backend/memory", "backend/service"},
	"backend/service/reconcile":    {"backend/memory"},
	"backend/service/sender":       {"backend/memory"},
	"backend/service/dependency":   {"backend/service/jsontree"},
	"graph/identity":               {"internal/redistest"},
	"graph/rpc":                    {"backend/memory", "graph/kinds", "graph/kinds/kindstest"},
	"graph/engine":                 {"schema", "graph/release", "backend/hub", "backend/memory", "backend/bolt", "backend/redis", "graph/engine/enginetest", "internal/redistest"},
	"graph/server":                 {"backend/memory", "backend/bolt", "backend/hub", "backend/traced", "backend/service/owner/standard/standardtest", "internal/wait"},
	"graph/console":                {"graph/kinds/kindstest"},
	"graph/transport":              {"backend", "backend/memory", "backend/service", "graph/engine", "graph/engine/enginetest", "graph/kinds/kindstest"},
	"cmd/sluice/auth":              {"cmd/sluice/commandtest", "cmd/sluice/read"},
	"cmd/sluice/config":            {"graph/transport", "backend/service/mirror"},
	"cmd/sluice/operate":           {"backend/keyring/kms/kmstest", "cmd/sluice/commandtest", "cmd/sluice/read", "backend/service/owner/ownertest", "backend/service/owner/standard/standardtest", "backend/bolt", "internal/redistest"},
	"cmd/sluice/remote":            {"cmd/sluice/auth", "cmd/sluice/commandtest", "cmd/sluice/read", "cmd/sluice/terminal"},
	"cmd/sluice/write":             {"cmd/sluice/commandtest"},
	"cmd/sluice/read":              {"cmd/sluice/commandtest"},
	"cmd/sluice/command":           {"cmd/sluice/commandtest"},
	// Standard methods are tested with the SDL that is pulled.
	"backend/service/owner/standard": {"backend/descriptor", "backend/service/owner/kit", "graph/kinds"},
	// The example is tested with its own SDL.
	"examples/service": {"backend/descriptor", "graph/kinds"},
	"resolvers":        {"backend/memory", "graph/kinds/kindstest"},
	"e2e":              {"backend", "backend/bolt", "backend/service/owner/standard/standardtest", "backend/service/owner/remote", "backend/keyring/kms/kmstest", "graph/engine/enginetest", "internal/redistest", "internal/span/spantest"},
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
	out, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	if len(out) < 10 {
		t.Fatalf("only %d files found", len(out))
	}
	return out
}

// parsed parses the module once for all tests. None of them changes what it returns.
var parsed = sync.OnceValues(func() ([]source, error) {
	root := filepath.Join("..", "..")
	var out []source
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, p)
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			_, err := os.Stat(filepath.Join(p, "go.mod"))
			otherModule := rel != "." && err == nil
			if otherModule || rel != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "node_modules") {
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
	return out, err
})

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
			may = append(append(may, testHelpers...), testsMay[r.folder]...)
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
	documented, written := map[string]bool{}, map[string]bool{}
	all := sources(t)
	for _, s := range all {
		if s.file.Doc != nil {
			documented[s.folder] = true
		}
		if s.generated {
			continue
		}
		if !s.test {
			for name := range writes(s.file) {
				written[s.folder+"."+name] = true
			}
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
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
				t.Errorf("%s: func init; construct what you need where you need it", s.path)
			}
		}
	}
	for _, s := range all {
		if !s.test && !s.generated {
			checkVars(t, s, written)
		}
		if !s.test && !s.generated && !documented[s.folder] {
			t.Errorf("%s: package %s has no package comment", s.folder, s.file.Name.Name)
			documented[s.folder] = true
		}
	}
}

// ofProcess are the variables of a process: its version, which the linker sets, and whether it makes traces and samples
// allocations at all, which the hot path asks where no Config reaches.
var ofProcess = map[string]bool{
	"cmd/sluice/version.release":           true,
	"cmd/sluice/gateway.sampleAllocations": true,
	"internal/span.tracing":                true,
}

// checkVars accepts package variables that nobody changes: sentinels, compiled
// expressions, interface assertions, embedded files, tables that no statement of
// their package writes to, those in ofProcess, and what packages for tests make once.
func checkVars(t *testing.T, s source, written map[string]bool) {
	t.Helper()
	for _, d := range s.file.Decls {
		d, ok := d.(*ast.GenDecl)
		if !ok || d.Tok != token.VAR {
			continue
		}
		embedded := d.Doc != nil && strings.Contains(commentText(d.Doc), "go:embed")
		for _, spec := range d.Specs {
			v := spec.(*ast.ValueSpec)
			for i, name := range v.Names {
				if name.Name == "_" || embedded || ofProcess[s.folder+"."+name.Name] || i < len(v.Values) && constant(s, v.Values[i]) && !written[s.folder+"."+name.Name] {
					continue
				}
				t.Errorf("%s: package variable %s; pass state in through a Config", s.fset.Position(name.Pos()), name.Name)
			}
		}
	}
}

// constant reports whether a value is a sentinel, a compiled expression, or a table
// whose cells are literals or names; in a package for tests, also one that is made once.
func constant(s source, e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.CallExpr:
		return strings.HasSuffix(s.folder, "test") && callee(e) == "sync.OnceValues" ||
			slices.Contains([]string{"errors.New", "regexp.MustCompile", "fmt.Errorf"}, callee(e))
	case *ast.CompositeLit:
		switch e.Type.(type) {
		case *ast.MapType, *ast.ArrayType:
		default:
			return false
		}
		for _, cell := range e.Elts {
			if kv, ok := cell.(*ast.KeyValueExpr); ok {
				cell = kv.Value
			}
			switch cell.(type) {
			case *ast.BasicLit, *ast.Ident:
			default:
				return false
			}
		}
		return true
	}
	return false
}

// writes are the names that a file assigns to, changes a part of, or takes the
// address of. A local variable of the same name counts as well.
func writes(f *ast.File) map[string]bool {
	out := map[string]bool{}
	note := func(e ast.Expr) {
		for {
			switch x := e.(type) {
			case *ast.IndexExpr:
				e = x.X
			case *ast.SliceExpr:
				e = x.X
			case *ast.Ident:
				out[x.Name] = true
				return
			default:
				return
			}
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, e := range n.Lhs {
				note(e)
			}
		case *ast.IncDecStmt:
			note(n.X)
		case *ast.UnaryExpr:
			if n.Op == token.AND {
				note(n.X)
			}
		case *ast.SliceExpr:
			note(n)
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.Ident); ok && slices.Contains([]string{"delete", "clear", "copy"}, f.Name) {
				note(n.Args[0])
			}
		}
		return true
	})
	return out
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
