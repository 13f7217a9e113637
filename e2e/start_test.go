package e2e_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sluicegw/sluice/internal/redistest"
)

func TestASignalEndsAStartThatWaitsForAPipe(t *testing.T) {
	t.Parallel()
	sameOnEachStore(t)
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{"--config", "--encryption-keys-file", "--trusted-documents", "--redis redis://127.0.0.1:1 --redis-password-file", "--redis rediss://127.0.0.1:1 --redis-ca"} {
		for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
			pipe := filepath.Join(t.TempDir(), "pipe")
			if err := syscall.Mkfifo(pipe, 0o600); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			args := append(strings.Fields("serve --listen 127.0.0.1:0 "+args), pipe)
			if !strings.Contains(args[len(args)-2], "redis") {
				args = append(args, "--data", t.TempDir())
			}
			cmd := exec.CommandContext(ctx, path, args...)
			errOut := &bytes.Buffer{}
			cmd.Stderr = errOut
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			w, err := os.OpenFile(pipe, os.O_WRONLY, 0) // waits until the gateway reads
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			lines := strings.Split(strings.TrimSpace(errOut.String()), "\n")
			if code := cmd.ProcessState.ExitCode(); ctx.Err() != nil || code != 1 || lines[len(lines)-1] != "sluice: interrupted" {
				t.Errorf("%v %v: exit %d\n%s", args, signal, code, errOut)
			}
			_ = w.Close()
			cancel()
		}
	}
}

// serveOnRedis starts a gateway on a Redis that may not be there, and returns it with what it says.
func serveOnRedis(t *testing.T, url string, args ...string) (*exec.Cmd, *lockedBuffer) {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	said := &lockedBuffer{grown: make(chan struct{})}
	cmd := exec.Command(path, append([]string{"serve", "--listen", "127.0.0.1:0", "--redis", url}, args...)...)
	cmd.Stderr = said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd, said
}

// waitsForRedis is what the log says once while a start waits.
const waitsForRedis = "Redis does not answer; it is asked again until ready-timeout"

func TestServe_WaitsForRedis(t *testing.T) {
	t.Parallel()
	sameOnEachStore(t)
	server := redistest.Start(t)
	server.Kill()
	cmd, said := serveOnRedis(t, server.URL())
	if !said.await(waitsForRedis) {
		t.Fatalf("it does not say that it waits:\n%s", said)
	}
	server.Restart()
	if !said.await("sluice serves") {
		t.Fatalf("it does not serve:\n%s", said)
	}
	if n := strings.Count(said.String(), waitsForRedis); n != 1 {
		t.Errorf("it says %d times that it waits", n)
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

func TestServe_WaitsForRedisUntilReadyTimeout(t *testing.T) {
	t.Parallel()
	sameOnEachStore(t)
	server := redistest.Start(t)
	server.Kill()
	begin := time.Now()
	cmd, said := serveOnRedis(t, server.URL(), "--ready-timeout", "3s")
	_ = cmd.Wait()
	lines := strings.Split(strings.TrimSpace(said.String()), "\n")
	if last := lines[len(lines)-1]; cmd.ProcessState.ExitCode() != 1 || !strings.HasPrefix(last, "sluice: ") ||
		!strings.Contains(last, server.Addr) || !strings.Contains(said.String(), waitsForRedis) {
		t.Errorf("exit %d\n%s", cmd.ProcessState.ExitCode(), said)
	}
	if waited := time.Since(begin); waited < 3*time.Second {
		t.Errorf("it waited %s", waited)
	}
}

func TestServe_EndsAtASignalWhileItWaitsForRedis(t *testing.T) {
	t.Parallel()
	sameOnEachStore(t)
	server := redistest.Start(t)
	server.Kill()
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		cmd, said := serveOnRedis(t, server.URL(), "--ready-timeout", "1h")
		if !said.await(waitsForRedis) {
			t.Fatalf("it does not say that it waits:\n%s", said)
		}
		_ = cmd.Process.Signal(signal)
		_ = cmd.Wait()
		lines := strings.Split(strings.TrimSpace(said.String()), "\n")
		if code := cmd.ProcessState.ExitCode(); code != 1 || lines[len(lines)-1] != "sluice: interrupted" {
			t.Errorf("%v: exit %d\n%s", signal, code, said)
		}
	}
}

func TestAnIndexOfNoBytesIsNone(t *testing.T) {
	t.Parallel()
	g := start(t, "", "--index-memory", "0")
	if _, body := g.do("GET", "/metrics", ""); !strings.Contains(body, "\nsluice_index_limit_bytes 0\n") || !strings.Contains(body, "\nsluice_index_kinds 0\n") {
		t.Error("there is an index")
	}
}
