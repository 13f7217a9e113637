package operate

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/backend/keyring/kms/kmstest"
	"github.com/sluicegw/sluice/cmd/sluice/commandtest"
)

func TestKeyCreate_PrintsAKeyThatServeAccepts(t *testing.T) {
	folder := t.TempDir()
	line := commandtest.Must(t, newRoot, "key", "create", "2026-07")
	keys := commandtest.WriteFile(t, folder, "keys", line)
	data := filepath.Join(folder, "data")
	if out := commandtest.Must(t, newRoot, "serve", "--check", "--listen", "127.0.0.1:0", "--data", data, "--encryption-keys-file", keys); !strings.Contains(out, "nothing is wrong") {
		t.Error(out)
	}
	if line == commandtest.Must(t, newRoot, "key", "create", "2026-07") {
		t.Error("the same key again")
	}
	if _, errOut, code := commandtest.Run(t, newRoot, "key", "create", "a b"); code != 2 || !strings.Contains(errOut, `"a b": the id is malformed`) {
		t.Errorf("exit %d %s", code, errOut)
	}
}

func TestKeyWrap_FollowsTheKeyOfTheKMS(t *testing.T) {
	server := kmstest.Start(t, "kek-1")
	t.Setenv("SLUICE_ENCRYPTION_KMS", "unix://"+server.Socket)
	folder := t.TempDir()
	data := filepath.Join(folder, "data")
	serveCheck := func(keys string) (out, errOut string, code int) {
		return commandtest.Run(t, newRoot, "serve", "--check", "--listen", "127.0.0.1:0", "--data", data, "--encryption-keys-file", keys)
	}
	made := commandtest.Must(t, newRoot, "key", "create", "new")
	if !strings.HasPrefix(made, "new:kms:") {
		t.Errorf("%s", made)
	}
	t.Setenv("SLUICE_ENCRYPTION_KMS", "")
	plain := commandtest.Must(t, newRoot, "key", "create", "old")
	t.Setenv("SLUICE_ENCRYPTION_KMS", server.Socket)
	keys := commandtest.WriteFile(t, folder, "keys", made+plain)
	wrapped, errOut, code := commandtest.Run(t, newRoot, "key", "wrap", keys)
	if code != 0 || strings.Count(wrapped, ":kms:") != 2 || !strings.HasPrefix(wrapped, made) || !strings.Contains(errOut, "1 key wrapped now with the key kek-1") {
		t.Errorf("exit %d %s\n%s", code, errOut, wrapped)
	}
	keys = commandtest.WriteFile(t, folder, "keys.wrapped", wrapped)
	if out, errOut, code := serveCheck(keys); code != 0 || strings.Contains(errOut, "the KMS has") {
		t.Errorf("exit %d %s %s", code, out, errOut)
	}
	server.SetKey("kek-2")
	if out, errOut, code := serveCheck(keys); code != 0 || !strings.Contains(errOut, `another key now, "kek-2"`) || !strings.Contains(errOut, "new, old") {
		t.Errorf("exit %d %s %s", code, out, errOut)
	}
	wrapped = commandtest.Must(t, newRoot, "key", "wrap", keys)
	keys = commandtest.WriteFile(t, folder, "keys.again", wrapped)
	if out, errOut, code := serveCheck(keys); code != 0 || strings.Contains(errOut, "the KMS has") {
		t.Errorf("exit %d %s %s", code, out, errOut)
	}
}

func TestKey_SaysWhatIsWrongWithTheKMS(t *testing.T) {
	server := kmstest.Start(t, "kek-1")
	folder := t.TempDir()
	keys := commandtest.WriteFile(t, folder, "keys", commandtest.Must(t, newRoot, "key", "create", "a", "--encryption-kms", server.Socket))
	server.SetFailure(errors.New("sealed"))
	serve := []string{"serve", "--check", "--listen", "127.0.0.1:0", "--data", filepath.Join(folder, "data")}
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"key", "create", "a", "--encryption-kms", server.Socket}, 1, `encryption-kms: status: the plugin at ` + server.Socket + ` refuses with internal: "sealed"`},
		{[]string{"key", "create", "a", "--encryption-kms", "tcp://127.0.0.1:1"}, 2, "is no path of a socket"},
		{[]string{"key", "wrap", keys, "--encryption-kms", server.Socket}, 1, "encryption-kms: status: "},
		{[]string{"key", "wrap", keys}, 2, "encryption-kms: the socket of a KMS plugin is wanted"},
		{[]string{"key", "wrap", keys + "-none", "--encryption-kms", server.Socket}, 2, "no such file"},
		{append(serve, "--encryption-keys-file", keys, "--encryption-kms", server.Socket), 1, `encryption-kms: status: the plugin at ` + server.Socket + ` refuses with internal: "sealed"`},
		{append(serve, "--encryption-keys-file", keys), 1, `encryption-keys-file: key 1, line 1: key "a" is wrapped by a KMS`},
		{append(serve, "--encryption-kms", server.Socket), 1, "encryption-kms: it has no effect without keys"},
	} {
		out, errOut, code := commandtest.Run(t, newRoot, c.args...)
		if code != c.code || !strings.Contains(out+errOut, c.says) {
			t.Errorf("%v: exit %d\n%s%s\nwant %d: %s", c.args, code, out, errOut, c.code, c.says)
		}
	}
}
