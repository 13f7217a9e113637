package e2e_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sluicegw/sluice/internal/leaktest"
	"github.com/sluicegw/sluice/internal/redistest"
)

// server is the Redis of the gateways that run on one.
var server redistest.Shared

// patience is how long anything here may take before it counts as hung.
const patience = 30 * time.Second

// binaries is the folder of what is built for the tests, each once.
var binaries = sync.OnceValues(func() (string, error) { return os.MkdirTemp("", "sluice-e2e-") })

// binary is the gateway, providerBinary an OpenID provider.
var (
	binary         = sync.OnceValues(func() (string, error) { return build("sluice", "../cmd/sluice") })
	providerBinary = sync.OnceValues(func() (string, error) { return build("provider", "./provider") })
)

func build(name, pkg string) (string, error) {
	dir, err := binaries()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, name)
	if out, err := exec.Command("go", "build", "-ldflags", "-s -w", "-o", path, pkg).CombinedOutput(); err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	return path, nil
}

// atOnce is how many tests run at once that call Parallel: all but those that set variables of the environment and those
// that other tests call. They wait for processes more than they compute, so there are more than cores.
const atOnce = "4"

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", atOnce)                          // before the command line is parsed, so that it has the last word
	_ = os.Setenv("SLUICE_CONTEXTS", "/nonexistent/contexts.yaml") // not those of the person who runs the tests
	leaktest.Main(m, server.Stop, func() {
		if dir, err := binaries(); err == nil {
			_ = os.RemoveAll(dir)
		}
	})
}

// gateway is a running process.
type gateway struct {
	t       *testing.T
	cmd     *exec.Cmd
	address string // http://127.0.0.1:port
	data    string
	log     *lockedBuffer
	exited  chan error
	// token of the caller; empty for none.
	token string
	// tokenPath is a file with the token that command lines show; empty for none.
	tokenPath string
}

// identify adds the credential of the caller.
func (g *gateway) identify(header http.Header) {
	if g.token != "" {
		header.Set("Authorization", "Bearer "+g.token)
	}
}

type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
	// grown is closed and replaced at each line.
	grown chan struct{}
}

func (b *lockedBuffer) write(line string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.buf.WriteString(line + "\n")
	close(b.grown)
	b.grown = make(chan struct{})
}

// Write takes what a process says, a line or more at a time.
func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.write(strings.TrimSuffix(string(p), "\n"))
	return len(p), nil
}

// await reports whether the text comes in time.
func (b *lockedBuffer) await(text string) bool {
	late := time.After(patience)
	for {
		b.mu.Lock()
		found, grown := strings.Contains(b.buf.String(), text), b.grown
		b.mu.Unlock()
		if found {
			return true
		}
		select {
		case <-grown:
		case <-late:
			return false
		}
	}
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// start runs a gateway on a data folder; a new one if data is empty.
func start(t *testing.T, data string, args ...string) *gateway {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	return startBinary(t, path, data, args...)
}

// startBinary runs a gateway from any binary.
func startBinary(t *testing.T, path, data string, args ...string) *gateway {
	t.Helper()
	g, err := tryStartBinary(t, path, data, args...)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// tryStart is start that returns an error if the gateway does not start.
func tryStart(t *testing.T, data string, args ...string) (*gateway, error) {
	t.Helper()
	path, err := binary()
	if err != nil {
		return nil, err
	}
	return tryStartBinary(t, path, data, args...)
}

func tryStartBinary(t *testing.T, path, data string, args ...string) (*gateway, error) {
	t.Helper()
	if data == "" {
		data = t.TempDir()
	}
	args = append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)
	identifies := slices.ContainsFunc(args, func(a string) bool {
		return slices.Contains([]string{"--tokens", "--oidc", "--tls-client-ca", "--trust-proxy"}, a)
	})
	if identifies && !slices.Contains(args, "--admin-group") { // what callers may do is no question of this test
		args = append(args, "--admin-group", "system:authenticated")
	}
	if !slices.Contains(args, "--redis") && !slices.Contains(args, "--data") {
		args = append(args, store(t, data)...)
	}
	g := &gateway{t: t, data: data, log: &lockedBuffer{grown: make(chan struct{})}, exited: make(chan error, 1)}
	g.cmd = exec.Command(path, args...)
	stderr, err := g.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := g.cmd.Start(); err != nil {
		return nil, err
	}
	address := make(chan string, 1)
	go func() {
		lines := bufio.NewScanner(stderr)
		for lines.Scan() {
			g.log.write(lines.Text())
			var line struct{ Msg, Address string }
			if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "sluice serves" {
				address <- line.Address
			}
		}
		g.exited <- g.cmd.Wait()
		close(address)
	}()
	t.Cleanup(func() { _ = g.cmd.Process.Kill() })
	select {
	case a, ok := <-address:
		if !ok {
			return nil, fmt.Errorf("the gateway did not start:\n%s", g.log)
		}
		g.address = a
	case <-time.After(patience):
		return nil, fmt.Errorf("the gateway did not start in time:\n%s", g.log)
	}
	return g, nil
}

// storeVariable chooses the store of all gateways here: redis, or the embedded one.
const storeVariable = "SLUICE_TEST_STORE"

// sameOnEachStore skips a test of the run on Redis: it names its stores itself, or what it tests does not depend on them.
func sameOnEachStore(t *testing.T) {
	t.Helper()
	if os.Getenv(storeVariable) != "" {
		t.Skip("the same on each store: it ran on the embedded one")
	}
}

// store are the flags of the store that a data folder stands for: on Redis it is a prefix.
func store(t *testing.T, data string) []string {
	t.Helper()
	switch chosen := os.Getenv(storeVariable); chosen {
	case "":
		return []string{"--data", data}
	case "redis":
		return []string{"--redis", server.Server(t).URL(), "--redis-prefix", prefix(data)}
	default:
		t.Fatalf("%s is %q; redis is accepted, and nothing for the embedded store", storeVariable, chosen)
		return nil
	}
}

func prefix(data string) string { return fmt.Sprintf("t%x:", crc32.ChecksumIEEE([]byte(data))) }

// kill ends the process as a crash would.
func (g *gateway) kill() {
	g.t.Helper()
	_ = g.cmd.Process.Kill()
	g.wait()
}

// stop asks the process to end and returns its exit code.
func (g *gateway) stop() int {
	g.t.Helper()
	if err := g.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		g.t.Fatal(err)
	}
	g.wait()
	return g.cmd.ProcessState.ExitCode()
}

func (g *gateway) wait() {
	g.t.Helper()
	select {
	case <-g.exited:
	case <-time.After(patience):
		g.t.Fatalf("the gateway did not end:\n%s", g.log)
	}
}

// answer is what the API says.
type answer struct {
	Data   map[string]any
	Errors []struct {
		Message    string
		Path       []any
		Extensions map[string]any
	}
	Status int
}

func (a answer) codes() string {
	var out []string
	for _, e := range a.Errors {
		out = append(out, fmt.Sprint(e.Extensions["code"]))
	}
	return strings.Join(out, " ")
}

// get walks into the data by names and list indexes.
func (a answer) get(path ...any) any {
	var v any = a.Data
	for _, p := range path {
		switch p := p.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[p]
		case int:
			l, _ := v.([]any)
			if p >= len(l) {
				return nil
			}
			v = l[p]
		}
	}
	return v
}

func (g *gateway) post(query string, variables map[string]any) answer {
	g.t.Helper()
	a, err := g.send(query, variables)
	if err != nil {
		g.t.Fatal(err)
	}
	return a
}

// must is post without an error.
func (g *gateway) must(query string) answer {
	g.t.Helper()
	a := g.post(query, nil)
	if len(a.Errors) > 0 {
		g.t.Fatalf("%s: %+v", query, a)
	}
	return a
}

func (g *gateway) send(query string, variables map[string]any) (a answer, err error) {
	body, err := json.Marshal(map[string]any{"query": query, "variables": variables})
	if err != nil {
		return a, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, g.address+"/graphql", bytes.NewReader(body))
	if err != nil {
		return a, err
	}
	req.Header.Set("Content-Type", "application/json")
	g.identify(req.Header)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return a, err
	}
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		return a, err
	}
	a.Status = res.StatusCode
	if err := json.Unmarshal(raw, &a); err != nil {
		return a, fmt.Errorf("answer %s: %w", raw, err)
	}
	return a, nil
}

// cli runs a command line against the gateway.
func (g *gateway) cli(stdin string, args ...string) (stdout, stderr string, code int) {
	g.t.Helper()
	args = append(args, "--server", g.address)
	if g.tokenPath != "" {
		args = append(args, "--token-file", g.tokenPath)
	}
	return sluice(g.t, stdin, args...)
}

func sluice(t *testing.T, stdin string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	var out, errOut bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errOut
	_ = cmd.Run()
	if ctx.Err() != nil {
		t.Fatalf("sluice %v did not end", args)
	}
	return out.String(), errOut.String(), cmd.ProcessState.ExitCode()
}
