package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheLinesOfTheManualOfTheCommandLineRun(t *testing.T) {
	g := someNetworks(t)
	raw, err := os.ReadFile("../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	_, reading, found := strings.Cut(string(raw), "\n## Reading\n")
	reading, _, _ = strings.Cut(reading, "\n## ")
	if !found {
		t.Fatal("docs/cli.md has no section Reading")
	}
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	for _, part := range strings.Split(reading, "```sh\n")[1:] {
		block, _, _ := strings.Cut(part, "```")
		for line := range strings.Lines(block) {
			cmd := exec.Command("sh", "-c", line)
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
