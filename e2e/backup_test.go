package e2e_test

import (
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sluicegw/sluice/internal/redistest"
)

// backedUp takes a backup of a gateway over its admin socket, and returns the folder of a store made of it.
func backedUp(t *testing.T, g *gateway) string {
	t.Helper()
	folder := t.TempDir()
	path := filepath.Join(folder, "sluice.db")
	redistest.Await(t, "the backup before it ends", func() error {
		out, errOut, code := sluice(t, "", "backup", "--data", g.data, "--to", path)
		if strings.Contains(errOut, "another backup is under way") {
			return errors.New(errOut)
		}
		if code != 0 || !strings.Contains(out, "sluice.db: ") {
			t.Fatalf("exit %d %s%s", code, out, errOut)
		}
		return nil
	})
	if left, _ := filepath.Glob(filepath.Join(folder, "*.part")); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
	if left, _ := filepath.Glob(filepath.Join(g.data, "*.copy-*")); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
	return folder
}

// body gets a page of a gateway.
func body(t *testing.T, g *gateway, path string) (status int, text string) {
	t.Helper()
	res, err := http.Get(g.address + path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(raw)
}

func TestBackup_IsServedReadOnly(t *testing.T) {
	t.Parallel()
	if os.Getenv(storeVariable) != "" {
		t.Skip("of the embedded store")
	}
	audit := filepath.Join(t.TempDir(), "audit.log")
	g := start(t, "", "--audit", audit)
	text := network("net-a", "core", 1500)
	if _, errOut, code := g.cli(text, "apply", "-f", "-"); code != 0 {
		t.Fatal(errOut)
	}
	folder := backedUp(t, g)
	if _, errOut, code := g.cli(strings.ReplaceAll(text, "1500", "1400"), "apply", "-f", "-"); code != 0 {
		t.Fatal(errOut)
	}
	if raw, err := os.ReadFile(audit); err != nil || strings.Count(string(raw), `"event":"EXPORTED"`) != 1 || !strings.Contains(string(raw), `"form":"backup","secrets":"plain"`) {
		t.Errorf("%v, %s", err, raw)
	}
	_, errOut, code := g.cli("", "backup", "--to", filepath.Join(folder, "network.db"))
	if code != 1 || !strings.Contains(errOut, "take the backup over the admin socket") {
		t.Errorf("over the network without keys: exit %d %s", code, errOut)
	}
	if out, errOut, code := sluice(t, "", "check", folder); code != 0 || !strings.Contains(out, "nothing is damaged") {
		t.Errorf("exit %d %s%s", code, out, errOut)
	}

	readers := []*gateway{start(t, folder, "--read-only"), start(t, folder, "--read-only")}
	for _, r := range readers {
		if out, errOut, code := r.cli("", "get", "network", "net-a", "-o", "json"); code != 0 || !strings.Contains(out, "1500") {
			t.Errorf("exit %d %s%s", code, out, errOut)
		}
		for _, args := range [][]string{{"apply", "-f", "-"}, {"delete", "network", "net-a"}, {"label", "network", "net-a", "a=b"}} {
			_, errOut, code := r.cli(text, args...)
			if code != 1 || !strings.Contains(errOut, "this gateway is read-only and takes no changes") || strings.Count(errOut, "\n") != 1 {
				t.Errorf("%v: exit %d %s", args, code, errOut)
			}
		}
		if _, errOut, code := r.cli(strings.ReplaceAll(text, "1500", "1300"), "diff", "-f", "-"); code != 1 || errOut != "" {
			t.Errorf("a diff: exit %d %s", code, errOut)
		}
		if status, text := body(t, r, "/readyz"); status != 200 || text != "ok\nread-only: changes are refused\n" {
			t.Errorf("%d %q", status, text)
		}
		if only, _ := r.must(`{ kinds { readOnly } }`).get("kinds", 0, "readOnly").(bool); !only {
			t.Error("the kinds do not say that the gateway is read-only")
		}
		if _, text := body(t, r, "/metrics"); !strings.Contains(text, "sluice_read_only 1\n") {
			t.Error("the metric is missing")
		}
	}
}

// TestBackup_IsKilled kills backups at any moment. None leaves a file under the name that was asked for, unless it is
// complete.
func TestBackup_IsKilled(t *testing.T) {
	t.Parallel()
	if os.Getenv(storeVariable) != "" {
		t.Skip("of the embedded store")
	}
	g := start(t, "")
	if _, errOut, code := g.cli(network("net-a", "core", 1500), "apply", "-f", "-"); code != 0 {
		t.Fatal(errOut)
	}
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	rounds := 20
	if testing.Short() {
		rounds = 5
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	begin := time.Now()
	backedUp(t, g)
	took := time.Since(begin)
	for range rounds {
		to := filepath.Join(t.TempDir(), "backup.db")
		cmd := exec.Command(path, "backup", "--data", g.data, "--to", to)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		killing := time.AfterFunc(time.Duration(rnd.Int64N(int64(took))), func() { _ = cmd.Process.Signal(syscall.SIGKILL) })
		_ = cmd.Wait()
		killing.Stop()
		if _, err := os.Stat(to); err != nil {
			continue
		}
		if out, errOut, code := sluice(t, "", "check", to); code != 0 {
			t.Errorf("exit %d %s%s", code, out, errOut)
		}
	}
	backedUp(t, g)
}
