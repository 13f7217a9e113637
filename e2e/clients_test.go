//go:build clients

package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// clientPatience is how long a suite of clients may take: code generators and
// browsers start slowly.
const clientPatience = 4 * time.Minute

// clients is the npm project of the suites, reactExample the one of the example that they drive.
const (
	clients      = "clients"
	reactExample = "../examples/react"
)

// clientsInstalled runs `npm ci` once in each project, and not at all if what
// is installed is what the lock file says.
var clientsInstalled = sync.OnceValue(func() error {
	return errors.Join(installed(clients), installed(reactExample))
})

func installed(project string) error {
	want, err := os.ReadFile(filepath.Join(project, "package-lock.json"))
	if err != nil {
		return err
	}
	mark := filepath.Join(project, "node_modules", ".sluice-lock.json")
	if have, err := os.ReadFile(mark); err == nil && bytes.Equal(have, want) {
		return nil
	}
	ctx, stop := context.WithTimeout(context.Background(), clientPatience)
	defer stop()
	cmd := exec.CommandContext(ctx, "npm", "ci", "--no-audit", "--no-fund", "--loglevel=error")
	cmd.Dir = project
	if out, err := cmd.CombinedOutput(); err != nil {
		return &clientError{err: err, out: string(out)}
	}
	return os.WriteFile(mark, want, 0o600)
}

// clientError is a program that failed, with what it printed.
type clientError struct {
	err error
	out string
}

func (e *clientError) Error() string { return e.err.Error() + "\n" + e.out }

func (e *clientError) Unwrap() error { return e.err }

// needClients fails a test that cannot run.
func needClients(t *testing.T) {
	t.Helper()
	if err := clientsInstalled(); err != nil {
		t.Fatalf("install the clients: %v", err)
	}
}

// suite is one file of tests, and how it and its gateway are started.
type suite struct {
	file string
	env  []string
	args []string
	// only is a pattern of the names of its tests that are run; empty runs all.
	only string
}

// run runs it against a gateway of its own.
func (s suite) run(t *testing.T) {
	t.Helper()
	file := s.file
	g := start(t, "", s.args...)
	ctx, stop := context.WithTimeout(context.Background(), clientPatience)
	defer stop()
	node := []string{"--test", "--test-reporter=spec"}
	if s.only != "" {
		node = append(node, "--test-name-pattern="+s.only)
	}
	cmd := exec.CommandContext(ctx, "node", append(node, filepath.Base(file))...)
	cmd.Dir = clients
	cmd.Env = append(append(os.Environ(), "SLUICE_URL="+g.address), s.env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v\n%s\nthe gateway said:\n%s", file, err, out, g.log)
	} else {
		t.Logf("%s", out)
	}
	if !regexp.MustCompile(`(?m)^\S* ?pass [1-9]`).Match(out) {
		t.Errorf("%s ran no test:\n%s", file, out)
	}
	if code := g.stop(); code != 0 {
		t.Errorf("%s: the gateway ended with %d:\n%s", file, code, g.log)
	}
}

// ownGateways is the suite that starts gateways itself, to kill them and to put them on other stores.
const ownGateways = "live"

// editorSuite is the suite that runs the command line for the files of an editor.
const editorSuite = "editor"

// versionsSuite is the suite that looks at released versions with graphql-js.
const versionsSuite = "versions"

// withEdits gives a suite the binary, and a folder with random edits of a catalogue, which a test of graph/release writes.
func withEdits(t *testing.T) []string {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "go", "test", "./graph/release", "-count=1", "-run", "^TestCheck_RefusesExactlyTheEditsThatBreakClients$")
	cmd.Dir = ".."
	cmd.Env = append(os.Environ(), "SLUICE_TEST_EDITS="+folder)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return []string{"SLUICE_BINARY=" + path, "SLUICE_EDITS=" + folder}
}

// ownStores is how many stores that suite may use.
const ownStores = 15

// withGateways gives a suite the binary and empty stores.
func withGateways(t *testing.T) []string {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	stores := make([][]string, ownStores)
	for i := range stores {
		stores[i] = store(t, t.TempDir())
	}
	flags, err := json.Marshal(stores)
	if err != nil {
		t.Fatal(err)
	}
	return []string{"SLUICE_BINARY=" + path, "SLUICE_STORES=" + string(flags)}
}

// TestClientsOfAVersion: the package for pages works by v1.0 of the embedded catalogue as by the newest API.
func TestClientsOfAVersion(t *testing.T) {
	needClients(t)
	suite{
		file: filepath.Join(clients, ownGateways+".test.mjs"),
		env:  append(withGateways(t), "SLUICE_TEST_API=v1.0"),
		only: "pages are read|restart|update shows at once|saveMerged",
	}.run(t)
}

func TestClientsOfOtherPeople(t *testing.T) {
	needClients(t)
	files, err := filepath.Glob(filepath.Join(clients, "*.test.mjs"))
	if err != nil || len(files) < 9 {
		t.Fatalf("%d suites: %v", len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".test.mjs")
		if slices.Contains(browserSuites, name) {
			continue // TestBrowser
		}
		t.Run(name, func(t *testing.T) {
			s := suite{file: file}
			switch name {
			case ownGateways:
				s.env = withGateways(t)
			case versionsSuite:
				s.env = withEdits(t)
			case editorSuite:
				path, err := binary()
				if err != nil {
					t.Fatal(err)
				}
				s.env = []string{"SLUICE_BINARY=" + path}
			}
			s.run(t)
		})
	}
}
