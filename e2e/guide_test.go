//go:build clients

package e2e_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// guidePrograms builds the programs of examples/client, which docs/client-libraries.md lists. It returns the paths of the
// binaries by the names of the programs.
func guidePrograms(t *testing.T) map[string]string {
	t.Helper()
	sources, err := filepath.Glob("../examples/client/*")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	out := map[string]string{}
	for _, source := range sources {
		name := filepath.Base(source)
		out[name] = filepath.Join(folder, name)
		if said, err := exec.Command("go", "build", "-o", out[name], source).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, said)
		}
	}
	return out
}

// guideRun runs one of them to its end.
func guideRun(t *testing.T, g *gateway, program string, args ...string) string {
	t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), "SLUICE_SERVER="+g.address)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", program, err, out)
	}
	return string(out)
}

const guideSpec = `{cloudCredentialsRef: {secretName: "c", cloudName: "o"}, resource: {mtu: 1500}}`

func TestClientsGuideInGo(t *testing.T) {
	programs := guidePrograms(t)
	if len(programs) != 4 {
		t.Fatalf("%d programs; a new one needs a test", len(programs))
	}
	g := start(t, "")
	write := func(name string) {
		t.Helper()
		g.must(`mutation { createNetwork(input: {namespace: "guide", name: "` + name + `", spec: ` + guideSpec + `}) { network { id } } }`)
	}
	write("a")
	write("b")

	t.Run("a list, with a token", func(t *testing.T) {
		there, err := url.Parse(g.address)
		if err != nil {
			t.Fatal(err)
		}
		front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer a-token" {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			r.Header.Del("Authorization")
			httputil.NewSingleHostReverseProxy(there).ServeHTTP(w, r)
		}))
		defer front.Close()
		file := filepath.Join(t.TempDir(), "token")
		if err := os.WriteFile(file, []byte("a-token\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Setenv("TOKEN_FILE", file)
		lines := strings.Fields(guideRun(t, &gateway{address: front.URL}, programs["list"], "guide"))
		if len(lines) != 4 || lines[0] != "a" || lines[2] != "b" {
			t.Errorf("it printed %q", lines)
		}
	})
	t.Run("a manifest", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "network.yaml")
		manifest := strings.Replace(networkManifest, "net-a", "applied", 1)
		if err := os.WriteFile(file, []byte(manifest), 0o644); err != nil {
			t.Fatal(err)
		}
		if out := guideRun(t, g, programs["apply"], file); strings.TrimSpace(out) != "applied CREATED" {
			t.Errorf("it printed %q", out)
		}
	})
	t.Run("several writers of one network lose no update", func(t *testing.T) {
		const writers = 4
		done := make(chan string, writers)
		for range writers {
			go func() {
				ctx, stop := context.WithTimeout(context.Background(), patience)
				defer stop()
				cmd := exec.CommandContext(ctx, programs["update"], "guide", "a")
				cmd.Env = append(os.Environ(), "SLUICE_SERVER="+g.address)
				out, err := cmd.CombinedOutput()
				if err != nil {
					out = append(out, err.Error()...)
				}
				done <- strings.TrimSpace(string(out))
			}()
		}
		var said []string
		for range writers {
			said = append(said, <-done)
		}
		got := g.must(`{ network(namespace: "guide", name: "a") { spec { resource { mtu } } } }`).get("network", "spec", "resource", "mtu")
		if got != float64(1500+100*writers) {
			t.Errorf("the MTU is %v after %d writers said %q", got, writers, said)
		}
	})
	t.Run("a live list", func(t *testing.T) {
		cmd := exec.Command(programs["live"], "guide")
		cmd.Env = append(os.Environ(), "SLUICE_SERVER="+g.address)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		late := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
		defer late.Stop()
		lines := bufio.NewScanner(out)
		expect := func(want ...string) {
			t.Helper()
			for _, line := range want {
				if !lines.Scan() || lines.Text() != line {
					t.Fatalf("it printed %q; want %q", lines.Text(), line)
				}
			}
		}
		expect("RESET", "SNAPSHOT a", "SNAPSHOT b", "IN_SYNC")
		write("c")
		expect("ADDED c")
		if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, out); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("it ended with %v", err)
		}
	})
}
