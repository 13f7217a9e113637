package e2e_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	ossignal "os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// command starts the command line; the test stops it.
func (g *gateway) command(stdin io.Reader, args ...string) (cmd *exec.Cmd, out, errOut *bytes.Buffer) {
	g.t.Helper()
	path, err := binary()
	if err != nil {
		g.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	g.t.Cleanup(cancel)
	out, errOut = new(bytes.Buffer), new(bytes.Buffer)
	cmd = exec.CommandContext(ctx, path, append(args, "--server", g.address)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, out, errOut
	if err := cmd.Start(); err != nil {
		g.t.Fatal(err)
	}
	return cmd, out, errOut
}

func TestStoredTextDoesNotReachTheTerminalAsCommands(t *testing.T) {
	t.Parallel()
	g := startWith(t, "cloud-config")
	if out, errOut, code := g.cli(networkManifest, "apply", "-f", "-"); code != 0 {
		t.Fatal(out, errOut)
	}
	a := g.post(`query { network(name: "net-a") { metadata { revision } } }`, nil)
	bad := "\x1b]0;owned\a\x1b[31m\r\nnext\u0085line\u202e" + strings.Repeat("long", 1000)
	a = g.post(`mutation($input: UpdateNetworkStatusInput!) { updateNetworkStatus(input: $input) { network { id } } }`, map[string]any{"input": map[string]any{
		"name": "net-a", "expectedRevision": a.get("network", "metadata", "revision"),
		"status": map[string]any{"conditions": []any{map[string]any{"type": "Available", "status": bad}}},
	}})
	if a.codes() != "" {
		t.Fatalf("%+v", a)
	}
	out, _, code := g.cli("", "get", "networks")
	if lines := strings.Count(out, "\n"); code != 0 || lines != 2 || strings.ContainsAny(out, "\x1b\a\r\u0085\u202e") || !strings.Contains(out, `\x1b[31m`) {
		t.Errorf("exit %d, %d lines: %q", code, lines, out)
	}
	revision := g.must(`{ network(name: "net-a") { metadata { revision } } }`).get("network", "metadata", "revision")
	g.must(fmt.Sprintf(`mutation { patchNetwork(input: {name: "net-a", expectedRevision: %q, description: "a\u009b31m\u202eb\u007f"}) { network { id } } }`, revision))
	if out, _, code := g.cli("", "get", "network", "net-a", "-o", "json"); code != 0 || strings.ContainsAny(out, "\u009b\u202e\u007f") || !strings.Contains(out, `a\u009b31m\u202eb\u007f`) {
		t.Errorf("exit %d: %q", code, out)
	}
	_, errOut, _ := g.cli("", "get", "\x1b[31mnetworks")
	if strings.Contains(errOut, "\x1b") {
		t.Errorf("%q", errOut)
	}
}

func TestWhoWaitsForInputCanBeStopped(t *testing.T) {
	t.Parallel()
	g := start(t, "")
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		for _, args := range [][]string{{"apply", "-f", "-"}, {"patch", "network", "net-a", "--patch-file", "-"}} {
			stopWhileItReads(t, g, signal, args)
		}
	}
}

// stopWhileItReads sends a signal to a command that reads the standard input.
func stopWhileItReads(t *testing.T, g *gateway, signal os.Signal, args []string) {
	t.Helper()
	in, keep, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd, out, errOut := g.command(in, args...)
	// It reads, so it has heard of signals.
	if _, err := io.WriteString(keep, strings.Repeat(" ", 1<<20)); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 1 || errOut.String() != "sluice: interrupted; nothing was sent\n" {
		t.Errorf("%v %v: exit %d\n%s%s", args, signal, code, out, errOut)
	}
	_, _ = in.Close(), keep.Close()
}

func TestASignalEndsWhatReadsACatalogue(t *testing.T) {
	t.Parallel()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	// A shell lets what it runs in the background ignore interrupts, and what ignores a signal passes that
	// on to what it starts, but what catches one does not.
	caught := make(chan os.Signal, 1)
	ossignal.Notify(caught, syscall.SIGINT)
	defer ossignal.Stop(caught)
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		cmd := exec.CommandContext(ctx, path, "catalogue", "print")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// It prints more than a pipe holds, so it waits for a reader.
		if _, err := out.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // says by which signal
		if ctx.Err() != nil {
			t.Errorf("%v does not end it", signal)
		}
		cancel()
	}
}

func TestAnInterruptInTheEditorIsTheEditors(t *testing.T) {
	g := start(t, "")
	if out, errOut, code := g.cli(networkManifest, "apply", "-f", "-"); code != 0 {
		t.Fatal(out, errOut)
	}
	editor(t, `kill -INT $PPID; kill -INT $PPID; sed -i s/foo/edited/ "$1"`)
	cmd, out, errOut := g.command(nil, "edit", "network", "net-a")
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 0 || !strings.Contains(out.String(), "UPDATED") {
		t.Errorf("exit %d\n%s%s", code, out, errOut)
	}
	if out, _, _ := g.cli("", "get", "network", "net-a", "-o", "yaml"); !strings.Contains(out, "- edited") {
		t.Errorf("stored:\n%s", out)
	}
}

func TestATextIsKeptWhenTheEditorIsEnded(t *testing.T) {
	g := start(t, "")
	if out, errOut, code := g.cli(networkManifest, "apply", "-f", "-"); code != 0 {
		t.Fatal(out, errOut)
	}
	folder := t.TempDir()
	editor(t, `trap 'exit 3' TERM; sed -i s/foo/edited/ "$1"; kill -TERM $PPID; while :; do read -r _ < `+filepath.Join(folder, "fifo")+`; done`)
	t.Setenv("TMPDIR", folder)
	if err := syscall.Mkfifo(filepath.Join(folder, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd, out, errOut := g.command(nil, "edit", "network", "net-a")
	_ = cmd.Wait()
	files, _ := filepath.Glob(filepath.Join(folder, "sluice-net-a-*.yaml"))
	if code := cmd.ProcessState.ExitCode(); code != 1 || len(files) != 1 || !strings.Contains(errOut.String(), files[0]) {
		t.Fatalf("exit %d, files %v\n%s%s", code, files, out, errOut)
	}
	if text, err := os.ReadFile(files[0]); err != nil || !strings.Contains(string(text), "edited") {
		t.Errorf("%s %v", text, err)
	}
}

func TestThePasswordOfAGatewayIsNotPrinted(t *testing.T) {
	t.Parallel()
	for _, server := range []string{"http://user:hunter2@127.0.0.1:1", "ftp://user:hunter2@127.0.0.1:1", "http://user:hunter2@%zz", "http://user:hunter2@127.0.0.1:1/a?b=c"} {
		for _, args := range [][]string{{"get", "networks"}, {"watch", "networks"}, {"apply", "-f", "../examples/network.yaml"}} {
			out, errOut, code := sluice(t, "", append(args, "--server", server)...)
			if code == 0 || strings.Contains(out+errOut, "hunter2") || errOut == "" {
				t.Errorf("%v: exit %d\n%s%s", args, code, out, errOut)
			}
		}
	}
	_, errOut, _ := sluice(t, "", "get", "networks", "--server", "http://user:hunter2@127.0.0.1:1")
	if !strings.Contains(errOut, "http://127.0.0.1:1") {
		t.Errorf("the address is not named: %s", errOut)
	}
}

func TestManyLargeResourcesAreListed(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("long: make test-all")
	}
	g := start(t, "")
	const n = 80
	labels := make([]any, 0, 1)
	labels = append(labels, map[string]any{"key": "text", "value": strings.Repeat(`"`, 250<<10)})
	for i := range n {
		a := g.post(`mutation($input: CreateNetworkInput!) { createNetwork(input: $input) { clientMutationId } }`, map[string]any{"input": map[string]any{
			"name": fmt.Sprintf("n%02d", i), "annotations": labels,
			"spec": map[string]any{"cloudCredentialsRef": map[string]any{"secretName": "s", "cloudName": "c"}, "resource": map[string]any{}},
		}})
		if a.codes() != "" {
			t.Fatalf("%.300s", fmt.Sprint(a.Errors))
		}
	}
	out, errOut, code := g.cli("", "get", "networks", "-o", "json")
	if got := strings.Count(out, `"kind": "Network"`) + strings.Count(out, `"kind":"Network"`); code != 0 || got != n {
		t.Errorf("exit %d, %d of %d resources in %d bytes: %.300s", code, got, n, len(out), errOut)
	}
}

func TestWriting_FailsWhereTheOutputIsOnAFullDisk(t *testing.T) {
	t.Parallel()
	g := startWith(t, "s")
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("there is no /dev/full: Linux only")
	}
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	if _, errOut, code := g.cli(network("net-a", "web", 1500), "apply", "-f", "-"); code != 0 {
		t.Fatal(errOut)
	}
	for _, args := range [][]string{
		{"apply", "-f", "-"}, {"label", "network", "net-a", "a=b"}, {"patch", "network", "net-a", "-p", "spec: {resource: {mtu: 1400}}"},
		{"wait", "network/net-a", "--for=jsonpath={.metadata.name}=net-a"}, {"get", "networks"}, {"delete", "network", "net-a"},
	} {
		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		var errOut strings.Builder
		cmd := exec.CommandContext(t.Context(), path, append(args, "--server", g.address)...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(network("net-a", "web", 1500)), full, &errOut
		_ = cmd.Run() // the exit code is what counts
		_ = full.Close()
		if code := cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(errOut.String(), "no space left on device") {
			t.Errorf("%v: exit %d %s", args, code, errOut.String())
		}
	}
}
