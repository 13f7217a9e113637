package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheLinesOfTheManualThatReadRun(t *testing.T) {
	manual(t, someNetworks(t), "Reading", t.TempDir())
}

func TestTheLinesOfTheManualThatWriteRun(t *testing.T) {
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
	raw, err := os.ReadFile("../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(string(raw), "\n## "+section+"\n")
	text, _, _ = strings.Cut(text, "\n## ")
	if !found {
		t.Fatalf("docs/cli.md has no section %s", section)
	}
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	for _, part := range strings.Split(text, "```sh\n")[1:] {
		block, _, _ := strings.Cut(part, "```")
		for line := range strings.Lines(block) {
			cmd := exec.Command("sh", "-c", line)
			cmd.Dir = dir
			cmd.Env = append(cmd.Environ(), "SLUICE_SERVER="+g.address, "PATH="+filepath.Dir(path)+":"+os.Getenv("PATH"))
			if out, err := cmd.CombinedOutput(); err != nil || len(out) == 0 {
				t.Errorf("%s%v\n%s", line, err, out)
			}
			lines++
		}
	}
	if lines < 10 {
		t.Errorf("%d lines", lines)
	}
}
