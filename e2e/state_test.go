package e2e_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicegw/sluice/graph/client"
	"github.com/sluicegw/sluice/graph/kinds/kindstest"
	"github.com/sluicegw/sluice/internal/redistest"
)

// TestState_TheLinesOfTheManualRun runs the blocks of docs/state.md, one after the other, in one folder.
func TestState_TheLinesOfTheManualRun(t *testing.T) {
	t.Parallel()
	sameOnEachStore(t)
	raw, err := os.ReadFile("../docs/state.md")
	if err != nil {
		t.Fatal(err)
	}
	script := "set -e\n"
	for _, part := range strings.Split(string(raw), "```sh\n")[1:] {
		block, _, _ := strings.Cut(part, "```")
		script += block
	}
	script = strings.ReplaceAll(script, "redis://127.0.0.1:6379", redistest.Start(t).URL())
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
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }()
	late := time.AfterFunc(4*patience, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	defer late.Stop()
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	if n := strings.Count(out.String(), "code: \"4711\""); n != 5 {
		t.Errorf("the secret is shown %d times, want 5:\n%s", n, &out)
	}
}

// exported exports what a gateway has, and returns the file's path.
func exported(t *testing.T, g *gateway, args ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "state.gz")
	out, errOut, code := g.cli("", append([]string{"export", "--to", path}, args...)...)
	if code != 0 || !strings.Contains(out, " resource") {
		t.Fatalf("exit %d %s%s", code, out, errOut)
	}
	return path
}

// exportedLines returns the lines of an export without what differs between two stores: header and end, revisions, what
// encryption makes, and the times of the gateways' own records.
func exportedLines(t *testing.T, path string) map[string]string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	unzip, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(unzip)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	for _, line := range lines[1 : len(lines)-1] {
		var one map[string]any
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprint(one["kind"], "/", one["namespace"], "/", one["name"])
		if one["deleted"] == true {
			delete(out, name)
			continue
		}
		left := []string{"revision", "later"}
		if kind := fmt.Sprint(one["kind"]); kind == "_catalogue" || kind == "_controllers" {
			left = append(left, "createdAt", "updatedAt", "uid")
		}
		for _, member := range left {
			delete(one, member)
		}
		again, err := json.Marshal(one)
		if err != nil {
			t.Fatal(err)
		}
		out[name] = string(again)
	}
	return out
}

// TestState_IsTheSameOnTheOtherStore moves a resource of each kind, and one of each sort, from the embedded store to
// Redis, and compares what is exported there.
func TestState_IsTheSameOnTheOtherStore(t *testing.T) {
	t.Parallel()
	sameOnEachStore(t)
	keys := []string{"--encryption-keys-file", keysFile(t, "a")}
	data := t.TempDir()
	g := start(t, "", append([]string{"--data", data}, keys...)...)
	furnishState(t, g)
	file := exported(t, g)
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := exportedLines(t, file)
	for name, line := range lines {
		if strings.Contains(line, "cGxhbnRlZC1zZWNyZXQ") || strings.Contains(line, "planted-secret") {
			t.Errorf("%s has the secret: %s", name, line)
		}
	}
	restoresSome(t, g, file, keys)
	redis := redistest.Start(t)
	moved := start(t, "", append([]string{"--redis", redis.URL(), "--bootstrap", file}, keys...)...)
	after := exportedLines(t, exported(t, moved))
	if d := cmp.Diff(lines, after); d != "" {
		t.Errorf("before -, after +:\n%s", d)
	}
	for _, kind := range kindstest.Kinds(t) {
		found := false
		for name := range after {
			found = found || strings.HasPrefix(name, kind.Name+"/")
		}
		if !found {
			t.Errorf("there is no %s", kind.Name)
		}
	}
	out, errOut, code := moved.cli("", "reveal", "secret", "planted")
	if code != 0 || !strings.Contains(out, "planted-secret") {
		t.Errorf("exit %d %s%s", code, out, errOut)
	}
	// A second start with the file leaves what was done since.
	if _, errOut, code := moved.cli("", "delete", "secret", "planted"); code != 0 {
		t.Fatal(errOut)
	}
	moved.stop()
	again := start(t, "", append([]string{"--redis", redis.URL(), "--bootstrap", file}, keys...)...)
	if _, _, code := again.cli("", "get", "secret", "planted"); code != 3 {
		t.Errorf("what was deleted is back: exit %d", code)
	}
	again.stop()
	g.kill()
	refusesToStart(t, "which is not given: give it in encryption-keys-file", "--data", t.TempDir(), "--bootstrap", file)
	refusesToStart(t, "the store has resources", append([]string{"--data", data, "--bootstrap", file}, keys...)...)
	cutAndChanged(t, raw, keys)
}

// TestState_IsWholeAfterKills kills exports and bootstraps at random moments. What has the name of an export is whole,
// and a bootstrap that is begun again ends with what the file has.
func TestState_IsWholeAfterKills(t *testing.T) {
	t.Parallel()
	sameOnEachStore(t)
	rounds, resources := 20, 2000
	if testing.Short() {
		rounds, resources = 3, 300
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	g := start(t, "", "--data", t.TempDir())
	var many strings.Builder
	for i := range resources {
		fmt.Fprintf(&many, "---\n%s", network(fmt.Sprintf("net-%d", i), "x", 1500))
	}
	if _, errOut, code := g.cli(many.String(), "apply", "-f", "-"); code != 0 {
		t.Fatal(errOut)
	}
	file := exported(t, g)
	want := exportedLines(t, file)
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	// killed runs a command, and kills it after a while.
	killed := func(most time.Duration, args ...string) {
		cmd := exec.Command(path, args...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		timer := time.AfterFunc(time.Duration(rnd.Int64N(int64(most))), func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		timer.Stop()
	}
	redis := redistest.Start(t)
	onRedis := start(t, "", "--redis", redis.URL(), "--redis-prefix", "exported:", "--bootstrap", file)
	for round := range rounds {
		for _, from := range []*gateway{g, onRedis} {
			to := filepath.Join(t.TempDir(), "state.gz")
			killed(300*time.Millisecond, "export", "--to", to, "--server", from.address)
			if _, err := os.Stat(to); err == nil {
				if d := cmp.Diff(want, exportedLines(t, to)); d != "" {
					t.Fatalf("round %d: an export is not whole:\n%s", round, d)
				}
			}
		}
	}
	onRedis.kill()
	for round := range rounds {
		for _, store := range [][]string{
			{"--data", filepath.Join(t.TempDir(), "data")},
			{"--redis", redis.URL(), "--redis-prefix", fmt.Sprintf("r%d:", round)},
		} {
			flags := append([]string{"--bootstrap", file}, store...)
			killed(700*time.Millisecond, append([]string{"serve", "--listen", "127.0.0.1:0"}, flags...)...)
			again := start(t, "", flags...)
			if d := cmp.Diff(want, exportedLines(t, exported(t, again))); d != "" {
				t.Fatalf("round %d, %v: not what the file has:\n%s", round, store, d)
			}
			again.kill()
		}
	}
}

// TestState_AnExportOfAKilledGatewayIsNone kills gateways while they answer an export. What has the name of the export is
// whole; else the command fails and leaves nothing. The next start serves everything.
func TestState_AnExportOfAKilledGatewayIsNone(t *testing.T) {
	t.Parallel()
	sameOnEachStore(t)
	rounds, resources := 20, 2000
	if testing.Short() {
		rounds, resources = 3, 600
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	var many strings.Builder
	for i := range resources {
		fmt.Fprintf(&many, "---\n%s", network(fmt.Sprintf("net-%d", i), "x", 1500))
	}
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	for name, flags := range map[string][]string{
		"embedded": {"--data", t.TempDir()},
		"Redis":    {"--redis", redistest.Start(t).URL()},
	} {
		t.Run(name, func(t *testing.T) {
			g := start(t, "", flags...)
			if _, errOut, code := g.cli(many.String(), "apply", "-f", "-"); code != 0 {
				t.Fatal(errOut)
			}
			want := exportedLines(t, exported(t, g))
			failed := 0
			for round := range rounds {
				to := filepath.Join(t.TempDir(), "state.gz")
				cmd := exec.Command(path, "export", "--to", to, "--server", g.address)
				var errOut bytes.Buffer
				cmd.Stderr = &errOut
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				redistest.Await(t, "the export begins", func() error {
					found, err := filepath.Glob(to + "*")
					if err == nil && len(found) == 0 {
						err = os.ErrNotExist
					}
					return err
				})
				time.Sleep(time.Duration(rnd.Int64N(int64(20 * time.Millisecond))))
				g.kill()
				err := cmd.Wait()
				left, globErr := filepath.Glob(to + "*")
				switch {
				case globErr != nil:
					t.Fatal(globErr)
				case err == nil:
					if d := cmp.Diff(want, exportedLines(t, to)); d != "" {
						t.Fatalf("round %d: an export is not whole:\n%s", round, d)
					}
				case cmd.ProcessState.ExitCode() != 1 || strings.Count(errOut.String(), "\n") != 1 || len(left) > 0:
					t.Fatalf("round %d: exit %d, %q is left: %s", round, cmd.ProcessState.ExitCode(), left, &errOut)
				default:
					failed++
				}
				g = start(t, "", flags...)
				if d := cmp.Diff(want, exportedLines(t, exported(t, g))); d != "" {
					t.Fatalf("round %d: the next start serves something else:\n%s", round, d)
				}
			}
			t.Logf("%d of %d exports failed", failed, rounds)
		})
	}
}

// restoresSome deletes some resources of a gateway, and brings them back from a file.
func restoresSome(t *testing.T, g *gateway, file string, keys []string) {
	t.Helper()
	if _, errOut, code := g.cli("", "delete", "secret", "planted"); code != 0 {
		t.Fatal(errOut)
	}
	print := func(wantCode int, args ...string) (string, string) {
		out, errOut, code := sluice(t, "", append([]string{"export", "--from", file, "-o", "manifest"}, args...)...)
		if code != wantCode {
			t.Fatalf("exit %d %s", code, errOut)
		}
		return out, errOut
	}
	if out, warned := print(1, "secrets", "-n", "default"); strings.Contains(out, "cGxhbnRlZC1zZWNyZXQ") ||
		!strings.Contains(warned, "Secret/default/planted has no write-only values: they are encrypted with key \"a\"") {
		t.Errorf("without keys:\n%s%s", out, warned)
	}
	out, warned := print(0, append([]string{"secrets", "keypairs", "-n", "default"}, keys...)...)
	if strings.Count(warned, "\n") != 1 || !strings.Contains(warned, "Secret/default/held is left out: its deletion was requested") {
		t.Errorf("it warns of %s", warned)
	}
	if out, errOut, code := g.cli(out, "apply", "-f", "-"); code != 0 || !strings.Contains(out, "KeyPair default/") {
		t.Errorf("exit %d %s%s", code, out, errOut)
	}
	if out, _, _ := g.cli("", "reveal", "secret", "planted"); !strings.Contains(out, "planted-secret") {
		t.Errorf("the secret is not back: %s", out)
	}
}

// TestState_ManifestsByAnotherCatalogue prints resources by a catalogue that lacks a kind, whose name is a short name of
// another one now, and a field.
func TestState_ManifestsByAnotherCatalogue(t *testing.T) {
	t.Parallel()
	s := openShop(t, racks)
	s.must(`mutation { createRack(input: {name: "a", spec: {height: 1, label: "l"}}) { rack { id } } }`)
	s.must(`mutation { createNote(input: {name: "n", spec: {text: "x"}}) { note { id } } }`)
	file := exported(t, s.gateway, "--no-secrets")
	other := strings.NewReplacer(
		"  label: String @constraint(maxLength: 20)\n", "",
		`type Note @resource(plural: "notes", `, `type Memo @resource(plural: "memos", shortNames: ["note"], `,
		"NoteSpec", "MemoSpec").Replace(racks)
	out, errOut, code := sluice(t, "", "export", "--from", file, "-o", "manifest", "--catalogue", s.write("other", other))
	if code != 1 || !strings.Contains(out, "height: 1") || strings.Contains(out, "kind: Memo") || strings.Count(errOut, "\n") != 3 ||
		!strings.HasSuffix(errOut, "sluice: left out or incomplete: 2 resources\n") ||
		!strings.Contains(errOut, "Rack/default/a has fields that the catalogue does not have") ||
		!strings.Contains(errOut, "Note/default/n is left out: the catalogue does not have its kind") {
		t.Errorf("exit %d\n%s\n%s", code, out, errOut)
	}
}

// cutAndChanged expects a gateway to refuse a file that is cut, or changed in one byte, and to leave no store.
func cutAndChanged(t *testing.T, raw []byte, keys []string) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range 4 {
		at := rnd.IntN(len(raw))
		changed := bytes.Clone(raw)
		changed[at] ^= 1 << rnd.IntN(8)
		if i%2 == 0 {
			changed = raw[:at]
		}
		path := filepath.Join(t.TempDir(), "damaged.gz")
		writeFile(t, path, string(changed))
		data := filepath.Join(t.TempDir(), "data")
		refusesToStart(t, "bootstrap: "+path+": it ", append([]string{"--data", data, "--bootstrap", path}, keys...)...)
		if left, _ := filepath.Glob(filepath.Join(data, "sluice.db*")); len(left) > 0 {
			t.Errorf("%v is left", left)
		}
	}
}

// refusesToStart expects a gateway to end with one line.
func refusesToStart(t *testing.T, says string, args ...string) {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(path, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...).CombinedOutput()
	if err == nil || !strings.Contains(string(out), says) || strings.Count(string(out), "\n") != 1 {
		t.Errorf("%v %s", err, out)
	}
}

// furnishState makes a resource of each kind, and one of each sort.
func furnishState(t *testing.T, g *gateway) {
	t.Helper()
	c, err := client.New(client.Config{Server: g.address, API: client.Unreleased})
	if err != nil {
		t.Fatal(err)
	}
	docs := append(
		kindstest.Manifests(t, "samples"),
		"apiVersion: v1\nkind: Secret\nmetadata: {name: planted}\nstringData: {password: planted-secret}\n",
		"apiVersion: v1\nkind: Secret\nmetadata: {name: held}\nstringData: {password: planted-secret}\n",
		"apiVersion: access.sluice.dev/v1\nkind: AccessRole\nmetadata: {name: r}\nspec: {rules: [{verbs: [GET], kinds: [Network]}]}\n",
		"apiVersion: access.sluice.dev/v1\nkind: AccessBinding\nmetadata: {name: b}\nspec: {roles: [r], users: [\"token:ci\"], namespaces: [\"*\"]}\n",
	)
	for _, doc := range docs {
		if _, err := c.Apply(t.Context(), client.ApplyRequest{Manifest: doc, Namespace: "default"}); err != nil {
			t.Fatalf("%v\n%s", err, doc)
		}
	}
	for _, args := range [][]string{
		{"control", "image"},
		{"finalize", "secret", "held", "--add", "example.org/hold"},
		{"delete", "secret", "held"},
	} {
		if out, errOut, code := g.cli("", args...); code != 0 {
			t.Fatalf("sluice %v: exit %d %s%s", args, code, out, errOut)
		}
	}
}
