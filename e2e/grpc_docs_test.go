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

// TestGRPCGuide_TheLinesRun runs the blocks of docs/grpc.md, one after the other, in one folder.
func TestGRPCGuide_TheLinesRun(t *testing.T) {
	t.Parallel()
	sameOnEachStore(t)
	raw, err := os.ReadFile("../docs/grpc.md")
	if err != nil {
		t.Fatal(err)
	}
	script := "set -e\n"
	for _, part := range strings.Split(string(raw), "```sh\n")[1:] {
		block, _, _ := strings.Cut(part, "```")
		script += block
	}
	script = strings.ReplaceAll(script, "127.0.0.1:8081", freeAddress(t))
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	address := freeAddress(t)
	cmd := exec.Command("sh", "-c", script)
	cmd.Dir = t.TempDir()
	cmd.Env = append(cmd.Environ(), "SLUICE_LISTEN="+address, "SLUICE_SERVER=http://"+address, "PATH="+filepath.Dir(path)+":"+os.Getenv("PATH"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var out bytes.Buffer
	cmd.Stdout = &out
	cmd.Stderr = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }()
	late := time.AfterFunc(5*time.Minute, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	defer late.Stop()
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	for _, want := range []string{
		"optional string email = 1;", "optional Tier tier = 3;", `"tier":"TIER_LARGE"`, `"code":"invalid_argument"`, "team.spec.size", "core",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not print %q:\n%s", want, &out)
		}
	}
}
