package operate

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicegw/sluice/cmd/sluice/commandtest"
	"github.com/sluicegw/sluice/graph/identity"
)

func TestATokenIsPrintedOnceAndItsHashKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	out, errOut, code := commandtest.Run(t, newRoot, "token", "create", "ci", "--group", "ops", "--group", "dev", "--ttl", "30d", "--tokens", path)
	text := strings.TrimSuffix(out, "\n")
	if code != 0 || !strings.HasPrefix(text, "sluice_") || len(text) != 50 || strings.Contains(errOut, text) || !strings.Contains(errOut, "cannot be shown again") {
		t.Fatalf("exit %d %q %q", code, out, errOut)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	tokens, errs := identity.ParseTokens(raw)
	if len(tokens) != 1 || errs != nil || strings.Contains(string(raw), text) {
		t.Fatalf("%s %v", raw, errs)
	}
	left := time.Until(tokens[0].Expires)
	if strings.Join(tokens[0].Groups, ",") != "ops,dev" || left < 30*24*time.Hour-time.Minute || left > 30*24*time.Hour {
		t.Errorf("%v, valid for %v", tokens[0], left)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	if _, errOut, code := commandtest.Run(t, newRoot, "token", "create", "ci", "--tokens", path); code != 2 || !strings.Contains(errOut, `there is a token "ci" already; sluice token revoke`) {
		t.Errorf("exit %d %s", code, errOut)
	}
	t.Setenv("SLUICE_TOKENS", path)
	commandtest.Must(t, newRoot, "token", "revoke", "ci")
	if again := commandtest.Must(t, newRoot, "token", "create", "ci"); again == out {
		t.Error("the same token again")
	}
}

func TestTokensMadeAtOnceAreAllKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			if _, errOut, code := commandtest.Run(t, newRoot, "token", "create", fmt.Sprintf("n%d", i), "--tokens", path); code != 0 {
				t.Errorf("exit %d %s", code, errOut)
			}
		})
	}
	wg.Wait()
	raw, err := os.ReadFile(path)
	if tokens, errs := identity.ParseTokens(raw); len(tokens) != 12 || errs != nil || err != nil {
		t.Errorf("%d tokens %v %v", len(tokens), errs, err)
	}
}

func TestDamagedLinesAreReportedAndStay(t *testing.T) {
	hash := "sha256:" + strings.Repeat("0", 63)
	const damaged = "broken sha256:zz secretish -"
	path := filepath.Join(t.TempDir(), "tokens")
	begin := "# ours\n\n" + damaged + "\nold " + hash + "1 ops 2020-01-01T00:00:00Z\nlast " + hash + "2 - -"
	if err := os.WriteFile(path, []byte(begin), 0o644); err != nil {
		t.Fatal(err)
	}
	out, errOut, code := commandtest.Run(t, newRoot, "token", "list", "--tokens", path)
	if code != 1 || !strings.Contains(errOut, path+": line 3: ") || strings.Contains(errOut, "secretish") || strings.Contains(out+errOut, "sha256:0") {
		t.Errorf("exit %d %s", code, errOut)
	}
	if out != "NAME   GROUPS   EXPIRES\nold    ops      2020-01-01T00:00:00Z (expired)\nlast   -        never\n" {
		t.Errorf("%s", out)
	}
	out, _, _ = commandtest.Run(t, newRoot, "token", "list", "--tokens", path, "-o", "json")
	var rows []tokenRow
	if err := json.Unmarshal([]byte(out), &rows); err != nil || len(rows) != 2 || rows[0].ExpiresAt == nil || rows[1].ExpiresAt != nil || rows[1].Groups == nil {
		t.Errorf("%s %v", out, err)
	}
	if _, errOut, code := commandtest.Run(t, newRoot, "token", "create", "new", "--tokens", path); code != 0 || !strings.Contains(errOut, "line 3: ") {
		t.Errorf("exit %d %s", code, errOut)
	}
	if _, errOut, code := commandtest.Run(t, newRoot, "token", "revoke", "old", "--tokens", path); code != 0 || !strings.Contains(errOut, "line 3: ") {
		t.Errorf("exit %d %s", code, errOut)
	}
	raw, err := os.ReadFile(path)
	if want := strings.Replace(begin, "old "+hash+"1 ops 2020-01-01T00:00:00Z\n", "", 1) + "\nnew sha256:"; err != nil || !strings.HasPrefix(string(raw), want) {
		t.Errorf("%s %v", raw, err)
	}
}

func TestMistakesWithTokensAreOneClearLine(t *testing.T) {
	path := commandtest.WriteFile(t, t.TempDir(), "tokens", "")
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"create", "ci"}, 2, "--tokens FILE"},
		{[]string{"create", "a,b", "--tokens", path}, 2, "name: commas"},
		{[]string{"create", "a", "--group", "x y", "--tokens", path}, 2, "group: commas"},
		{[]string{"create", "a", "--ttl", "0", "--tokens", path}, 2, "ttl: "},
		{[]string{"create", "a", "--ttl", "-1h", "--tokens", path}, 2, "ttl: "},
		{[]string{"create", "a", "--ttl", "soon", "--tokens", path}, 2, "ttl"},
		{[]string{"revoke", "a", "--tokens", path}, 3, `there is no token "a"`},
		{[]string{"revoke", "a", "--tokens", path + "x"}, 2, "no such file"},
		{[]string{"list", "--tokens", path + "x"}, 2, "no such file"},
		{[]string{"list", "--tokens", path, "-o", "wide"}, 2, "accepted are table, json, yaml"},
		{[]string{}, 2, "create, list or revoke is wanted"},
	} {
		if _, errOut, code := commandtest.Run(t, newRoot, append([]string{"token"}, c.args...)...); code != c.code || !strings.Contains(errOut, c.says) || strings.Count(errOut, "\n") != 1 {
			t.Errorf("%v: exit %d %s", c.args, code, errOut)
		}
	}
}
