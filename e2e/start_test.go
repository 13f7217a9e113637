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
)

func TestASignalEndsAStartThatWaitsForAPipe(t *testing.T) {
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

func TestAnIndexOfNoBytesIsNone(t *testing.T) {
	g := start(t, "", "--index-memory", "0")
	if _, body := g.do("GET", "/metrics", ""); !strings.Contains(body, "\nsluice_index_limit_bytes 0\n") || !strings.Contains(body, "\nsluice_index_kinds 0\n") {
		t.Error("there is an index")
	}
}
