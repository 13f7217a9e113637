package e2e_test

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// fence is a block of docs/api-versions.md: a file, commands, or what the commands before it print.
var fence = regexp.MustCompile("(?ms)^```([^\n]*)\n(.*?)^```$")

// TestAPIVersions_TheManualRuns runs the commands of the page, in the folder of its files. A block without a language
// right behind commands is what the last of them prints. Commands of clients find a gateway with the catalogue that the
// page has made.
func TestAPIVersions_TheManualRuns(t *testing.T) {
	t.Parallel()
	sameOnEachStore(t)
	dir := t.TempDir()
	page, err := os.ReadFile("../docs/api-versions.md")
	if err != nil {
		t.Fatal(err)
	}
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	commands, printed := 0, 0
	last, server := "", ""
	for _, block := range fence.FindAllStringSubmatch(string(page), -1) {
		info, text := block[1], block[2]
		_, name, isFile := strings.Cut(info, " file=")
		switch {
		case isFile:
			at := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		case info == "sh", info == "sh client":
			if info == "sh client" && server == "" {
				server = start(t, "", "--catalogue", filepath.Join(dir, "shop")).address
			}
			for line := range strings.Lines(text) {
				cmd := exec.Command("sh", "-c", line)
				cmd.Dir = dir
				cmd.Env = append(cmd.Environ(), "PATH="+filepath.Dir(path)+":"+os.Getenv("PATH"), "SLUICE_SERVER="+server)
				out, err := cmd.CombinedOutput()
				if err != nil || len(out) == 0 {
					t.Errorf("%s%v\n%s", line, err, out)
				}
				last = string(out)
				commands++
			}
		case info == "":
			if text != last {
				t.Errorf("the page has\n%sand the command prints\n%s", text, last)
			}
			printed++
		}
	}
	if server == "" || commands < 15 || printed < 3 {
		t.Errorf("only %d commands, and what %d of them print", commands, printed)
	}
}

func TestAPIVersions_AGatewayServesAndReloadsThem(t *testing.T) {
	t.Parallel()
	shop := openJudgedShop(t, racks)
	release := func(number string) {
		t.Helper()
		if out, errOut, code := sluice(t, "", "catalogue", "release", number, shop.kinds); code != 0 {
			t.Fatalf("exit %d %s%s", code, out, errOut)
		}
	}
	ask := func(path, query string) string {
		t.Helper()
		_, text := shop.do(http.MethodPost, path, `{"query":"`+query+`"}`, "Content-Type", "application/json")
		return text
	}
	const widths = "{ racks { nodes { spec { width } } } }"
	next := shop.write("next", strings.Replace(racks, "  height: Int\n", "  height: Int\n  width: Int\n", 1))
	release("1.0")
	if out, errOut, code := shop.catalogue("reload"); code != 0 {
		t.Fatalf("exit %d %s%s", code, out, errOut)
	}
	if _, errOut, code := shop.catalogue("apply", next); code == 0 || !strings.Contains(errOut, "version v1.0 of the API was released and is gone") {
		t.Errorf("without its versions: exit %d %s", code, errOut)
	}
	if err := os.CopyFS(filepath.Join(next, "versions"), os.DirFS(filepath.Join(shop.kinds, "versions"))); err != nil {
		t.Fatal(err)
	}
	if out, errOut, code := shop.catalogue("apply", next); code != 0 {
		t.Fatalf("exit %d %s%s", code, out, errOut)
	}
	for path, want := range map[string]string{"/graphql": `"nodes":[]`, "/v1/graphql": "Cannot query field", "/v1.0/graphql": "Cannot query field"} {
		if got := ask(path, widths); !strings.Contains(got, want) {
			t.Errorf("%s: %s", path, got)
		}
	}
	if out, errOut, code := shop.cli("", "get", "racks", "--api", "v1.0"); code != 0 {
		t.Errorf("the command line by v1.0: exit %d %s%s", code, out, errOut)
	}
	if _, errOut, code := shop.cli("", "get", "racks", "--api", "v1.7"); code == 0 || !strings.Contains(errOut, "version v1.7 of the API is not served; served are v1.0") {
		t.Errorf("the command line by v1.7: exit %d %s", code, errOut)
	}
	release("1.1")
	if out, errOut, code := shop.catalogue("reload"); code != 0 {
		t.Fatalf("exit %d %s%s", code, out, errOut)
	}
	if got := ask("/v1/graphql", widths); !strings.Contains(got, `"nodes":[]`) {
		t.Errorf("after the release: %s", got)
	}
	api := filepath.Join(shop.kinds, "versions", "v1.0", "api.graphql")
	text, err := os.ReadFile(api)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, api, string(text)+"\n# edited\n")
	if _, errOut, code := shop.catalogue("reload"); code == 0 || !strings.Contains(errOut, "version v1.0 of the API was released and has other files now") {
		t.Errorf("edited: exit %d %s", code, errOut)
	}
	const changed = "sluice: warning: given up: v1.0 is served as it was changed, and its clients may fail"
	if _, errOut, code := shop.catalogue("reload", "--allow-breaking"); code != 0 || !strings.Contains(errOut, changed) {
		t.Errorf("edited, with the flag: exit %d %s", code, errOut)
	}
}
