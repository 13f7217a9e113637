package e2e_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestServicesGuide_TheLinesRun runs the blocks of docs/services.md, one after the other, in one folder.
func TestServicesGuide_TheLinesRun(t *testing.T) {
	t.Parallel()
	sameOnEachStore(t)
	raw, err := os.ReadFile("../docs/services.md")
	if err != nil {
		t.Fatal(err)
	}
	script := "set -e\n"
	for _, part := range strings.Split(string(raw), "```sh\n")[1:] {
		block, _, _ := strings.Cut(part, "```")
		script += block
	}
	service := freeAddress(t)
	_, port, _ := strings.Cut(service, ":")
	script = strings.ReplaceAll(script, "127.0.0.1:9310", service)
	script = strings.ReplaceAll(script, "sluice service test ", "sluice service test --patience 30s ")
	script = strings.ReplaceAll(script, "--file teams.db", "--file teams.db --port "+port)
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	examples, err := filepath.Abs("../examples")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(examples, filepath.Join(dir, "examples")); err != nil {
		t.Fatal(err)
	}
	address := freeAddress(t)
	cmd := exec.Command("sh", "-c", script)
	cmd.Dir = dir
	temporary := t.TempDir()
	cmd.Env = append(cmd.Environ(), "SLUICE_LISTEN="+address, "SLUICE_SERVER=http://"+address, "TMPDIR="+temporary,
		"PATH="+filepath.Dir(path)+":"+os.Getenv("PATH"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var out bytes.Buffer
	cmd.Stdout = &out
	cmd.Stderr = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }()
	late := time.AfterFunc(10*time.Minute, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	defer late.Stop()
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 {
		t.Errorf("the guide leaves files where it begins: %v, %v", left, err)
	}
	if left, err = os.ReadDir(temporary); err != nil || len(left) > 0 {
		t.Errorf("the guide leaves temporary files: %v, %v", left, err)
	}
	if strings.Contains(script, "until ") || strings.Contains(script, "while ") {
		t.Error("a command of the guide may wait for ever")
	}
	for _, want := range []string{
		"core@example.org", "the service has refused it", " 0 broken, ", "the service does not answer",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not print %q:\n%s", want, &out)
		}
	}
}
