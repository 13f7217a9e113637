package e2e_test

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// copyModule copies the sources of the module, as a user's clone has them.
func copyModule(t *testing.T, to string) {
	t.Helper()
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel("..", path)
		if d.IsDir() {
			if rel != "." && (strings.HasPrefix(d.Name(), ".") || rel == "bin" || rel == "sluice-data") {
				return filepath.SkipDir
			}
			return os.MkdirAll(filepath.Join(to, rel), 0o755)
		}
		if !d.Type().IsRegular() {
			return nil
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), raw, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestAFieldOfYourOwn does what examples/quota says, and what the files of
// testdata/own need beside: a field for everything that one can return or take.
func TestAFieldOfYourOwn(t *testing.T) {
	t.Parallel()
	sameOnEachStore(t)
	if testing.Short() {
		t.Skip("long: make test-all")
	}
	dir := t.TempDir()
	copyModule(t, dir)
	binary := filepath.Join(dir, "sluice")
	for _, command := range [][]string{
		{"cp", "examples/quota/quota.graphqls", "schema/core/"},
		{"cp", "examples/quota/quota.go", "resolvers/"},
		{"cp", "e2e/testdata/own/own.graphqls", "schema/core/"},
		{"cp", "e2e/testdata/own/own.go", "resolvers/"},
		{"cp", "e2e/testdata/own/own_test.go", "graph/engine/"},
		{"sh", "-c", `printf '  OwnJSON:\n    model: github.com/99designs/gqlgen/graphql.Any\n' >> gqlgen.yml`},
		{"make", "generate"},
		{"go", "build", "-tags", "quota", "-o", binary, "./cmd/sluice"},
	} {
		run(t, dir, command...)
	}
	t.Run("the example", func(t *testing.T) { driveQuota(t, binary) })
	t.Run("all that a field can return and take", func(t *testing.T) {
		out := run(t, dir, "go", "test", "-tags", "quota", "-run", "OnesOwn", "-v", "./graph/engine")
		if n := strings.Count(out, "\n--- PASS"); n != 9 {
			t.Errorf("%d tests passed:\n%s", n, out)
		}
	})
}

// run runs a command in a folder and returns what it says.
func run(t *testing.T, dir string, command ...string) string {
	t.Helper()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", command, err, out)
	}
	return string(out)
}

func driveQuota(t *testing.T, binary string) {
	g := startBinary(t, binary, "")
	const spec = `cloudCredentialsRef: {secretName: "s", cloudName: "c"}, managementPolicy: MANAGED, resource: `
	g.must(`mutation { createProject(input: {name: "p", spec: {` + spec + `{}}}) { project { id } } }`)
	for _, name := range []string{"a", "b", "c"} {
		g.must(`mutation { createNetwork(input: {name: "` + name + `", spec: {` + spec + `{projectRef: "p"}}}) { network { id } } }`)
		g.must(`mutation { createPort(input: {name: "` + name + `", spec: {` + spec + `{networkRef: "` + name + `", projectRef: "p"}}}) { port { id } } }`)
	}
	g.must(`mutation { createNetwork(input: {name: "other", spec: {` + spec + `{}}}) { network { id } } }`)
	a := g.post(`query($ports: PortFilter) {
		all: quotaSummary(name: "p") { networks ports { totalCount } }
		some: quotaSummary(name: "p", ports: $ports) {
			__typename
			project { __typename metadata { name } networks(first: 1) { nodes { metadata { name } } } }
			ports { totalCount nodes { metadata { name } network { project { id } } } }
		}
		none: quotaSummary(name: "nobody") { networks }
	}`, map[string]any{"ports": map[string]any{"name": map[string]any{"in": []string{"a", "c"}}}})
	project := g.must(`{ project(name: "p") { id } }`).get("project", "id")
	want := fmt.Sprintf("map[all:map[networks:3 ports:map[totalCount:3]] none:<nil> some:map[__typename:QuotaSummary "+
		"ports:map[nodes:[map[metadata:map[name:a] network:map[project:map[id:%[1]v]]] map[metadata:map[name:c] network:map[project:map[id:%[1]v]]]] totalCount:2] "+
		"project:map[__typename:Project metadata:map[name:p] networks:map[nodes:[map[metadata:map[name:a]]]]]]]", project)
	if got := fmt.Sprint(a.Data); got != want || a.codes() != "" {
		t.Errorf("got  %s\nwant %s\n%+v", got, want, a.Errors)
	}
	a = g.post(`{ quotaSummary(name: "p", ports: {name: {in: 5, eq: "x"}, color: "red"}) { networks } }`, nil)
	if !strings.Contains(a.codes(), "GRAPHQL_VALIDATION_FAILED") {
		t.Errorf("%+v", a)
	}
}
