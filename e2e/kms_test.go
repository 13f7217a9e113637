package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend/keyring/kms/kmstest"
)

// createSecret makes a Secret with a value.
const createSecret = `mutation { upsertSecret(input: {name: "s", spec: {stringData: [{key: "a", value: "planted"}]}}) { created } }`

// revealed returns the only value of the Secret, or what the errors of the answer say.
func revealed(t *testing.T, g *gateway) string {
	t.Helper()
	a := g.post(revealQuery, nil)
	if len(a.Errors) > 0 {
		return a.Errors[0].Message
	}
	return fmt.Sprint(a.Data)
}

func TestKMS_KeysAreWrappedLaterAndTheValuesStayReadable(t *testing.T) {
	t.Parallel()
	plugin := kmstest.Start(t, "kek-1")
	folder := t.TempDir()
	data := t.TempDir()
	env := "SLUICE_ENCRYPTION_KMS=" + plugin.Socket
	run := func(line string) {
		t.Helper()
		if out, err := runLine(t, line, folder, env); err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
	}
	keys := keysFile(t, "a")
	g := start(t, data, "--encryption-keys-file", keys)
	if a := g.post(createSecret, nil); len(a.Errors) > 0 {
		t.Fatal(a.Errors)
	}
	g.stop()
	run("sluice key wrap " + keys + " > wrapped")
	wrapped := filepath.Join(folder, "wrapped")
	with := []string{"--encryption-keys-file", wrapped, "--encryption-kms", plugin.Socket, "--log-level", "debug"}
	g = start(t, data, with...)
	if text := revealed(t, g); !strings.Contains(text, "planted") {
		t.Error(text)
	}
	g.stop()
	plugin.SetKey("kek-2")
	g = start(t, data, with...)
	if text := revealed(t, g); !strings.Contains(text, "planted") {
		t.Error(text)
	}
	if log := g.log.String(); !strings.Contains(log, `the KMS has another key now`) {
		t.Errorf("it does not warn of the new key:\n%s", log)
	}
	plugin.SetFailure(errors.New("sealed")) // it was asked at the start
	if a := g.post(createSecret, nil); len(a.Errors) > 0 {
		t.Error(a.Errors)
	}
	g.stop()
	raw, err := os.ReadFile(keys)
	if err != nil {
		t.Fatal(err)
	}
	_, key, _ := strings.Cut(strings.TrimSpace(strings.Split(string(raw), "\n")[1]), ":")
	if strings.Contains(g.log.String(), key) {
		t.Error("the log has the key")
	}
}

func TestKMS_AStartWithoutItFailsAndIsWorthRepeating(t *testing.T) {
	t.Parallel()
	plugin := kmstest.Start(t, "kek-1")
	folder := t.TempDir()
	if out, err := runLine(t, "sluice key create a > keys", folder, "SLUICE_ENCRYPTION_KMS="+plugin.Socket); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	plugin.SetFailure(errors.New("sealed"))
	for socket, says := range map[string]string{
		plugin.Socket:                      `sluice: encryption-kms: status: the plugin at ` + plugin.Socket + ` refuses with internal: "sealed"`,
		filepath.Join(folder, "none.sock"): "no such file or directory",
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // one that serves does not end
		defer cancel()
		cmd := exec.CommandContext(ctx, path, "serve", "--listen", "127.0.0.1:0", "--data", filepath.Join(folder, "data"),
			"--encryption-keys-file", filepath.Join(folder, "keys"), "--encryption-kms", socket)
		out, _ := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != 1 || !strings.Contains(string(out), says) || strings.Count(string(out), "\n") != 1 {
			t.Errorf("exit %d: %s\nwant %s", cmd.ProcessState.ExitCode(), out, says)
		}
	}
}

func TestKMS_TheLinesOfTheManualRun(t *testing.T) {
	t.Parallel()
	plugin := kmstest.Start(t, "kek-1")
	folder := t.TempDir()
	lines := sectionLines(t, "kms.md", "Setting it up")
	if len(lines) < 3 {
		t.Errorf("%d lines", len(lines))
	}
	for _, line := range lines {
		line = strings.ReplaceAll(line, "/run/kms/plugin.sock", plugin.Socket)
		if out, err := runLine(t, line, folder, "SLUICE_LISTEN=127.0.0.1:0"); err != nil {
			t.Errorf("%s%v\n%s", line, err, out)
		}
	}
}
