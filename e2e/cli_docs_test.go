package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestTheLinesOfTheManualThatReadRun(t *testing.T) {
	manual(t, someNetworks(t), "Reading", t.TempDir())
}

func TestTheLinesOfTheManualThatWriteRun(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"network.yaml": network("net-a", "core", 1500), "manifests/b.yaml": network("net-b", "web", 1500), "manifests/more/c.yaml": network("net-c", "web", 1500)})
	g := start(t, "")
	manual(t, g, "Writing", dir)
	if out, _, _ := g.cli("", "get", "networks", "-o", "name"); out != "" {
		t.Errorf("in the end nothing is left, but %s", out)
	}
}

// manual runs the lines of a section of docs/cli.md, one by one. Each prints something.
func manual(t *testing.T, g *gateway, section, dir string) {
	t.Helper()
	lines := sectionLines(t, "cli.md", section)
	for _, line := range lines {
		if out, err := runLine(t, line, dir, "SLUICE_SERVER="+g.address); err != nil || len(out) == 0 {
			t.Errorf("%s%v\n%s", line, err, out)
		}
	}
	if len(lines) < 10 {
		t.Errorf("%d lines", len(lines))
	}
}

// sectionLines returns the lines of the shell in a section of a page of docs.
func sectionLines(t *testing.T, page, section string) (lines []string) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "docs", page))
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(string(raw), "\n## "+section+"\n")
	text, _, _ = strings.Cut(text, "\n## ")
	if !found {
		t.Fatalf("docs/%s has no section %s", page, section)
	}
	for _, part := range strings.Split(text, "```sh\n")[1:] {
		block, _, _ := strings.Cut(part, "```")
		lines = append(lines, slices.Collect(strings.Lines(block))...)
	}
	return lines
}

// runLine runs a line of the shell in a folder, with the built binary in the path, and returns what it prints.
func runLine(t *testing.T, line, dir string, environment ...string) ([]byte, error) {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
	cmd.Dir = dir
	cmd.Env = append(cmd.Environ(), environment...)
	cmd.Env = append(cmd.Env, "PATH="+filepath.Dir(path)+":"+os.Getenv("PATH"))
	return cmd.CombinedOutput()
}
