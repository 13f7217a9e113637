package e2e_test

import (
	"bytes"
	"os/exec"
	"testing"
)

// startProgram starts a command whose context ends with the test. If the test fails, it logs what the command has
// written to its standard error.
func startProgram(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%s", stderr.Bytes())
		}
	})
}
