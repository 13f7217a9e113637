package operate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/cmd/sluice/commandtest"
)

func TestCatalogueRelease_KeepsAVersionThatTheCatalogueMustNotBreak(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "shelves.graphqls")
	put := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(args ...string) (string, string, int) {
		t.Helper()
		return commandtest.Run(t, newRoot, append([]string{"catalogue"}, args...)...)
	}
	put(file, shelves)
	out, errOut, code := run("release", "1.0", dir)
	if code != 0 || !strings.Contains(out, "released v1.0: keep its folder "+filepath.Join(dir, "versions", "v1.0")) {
		t.Fatalf("exit %d %s%s", code, out, errOut)
	}
	if !strings.Contains(out, "a running gateway serves v1.0 once it has read the catalogue: sluice catalogue apply "+dir+"; ") ||
		!strings.Contains(out, "SIGHUP") {
		t.Error(out)
	}
	kept, err := os.ReadFile(filepath.Join(dir, "versions", "v1.0", "shelves.graphqls"))
	if err != nil || string(kept) != shelves {
		t.Errorf("the sources are %s %v", kept, err)
	}
	if _, errOut, code = run("check", dir); code != 0 {
		t.Errorf("exit %d %s", code, errOut)
	}
	for _, c := range []struct{ number, want string }{
		{"1.0", "v1.0 cannot follow v1.0: the next minor version is v1.1, the next major one v2.0"},
		{"1.2", "v1.2 cannot follow v1.0"},
		{"3.0", "v3.0 cannot follow v1.0"},
		{"1.1.0", `"1.1.0" is no version`},
		{"v1", `"v1" is no version: MAJOR.MINOR is accepted, such as v1.0`},
	} {
		if _, errOut, code = run("release", c.number, dir); code != 2 || !strings.Contains(errOut, c.want) {
			t.Errorf("%s: exit %d %s", c.number, code, errOut)
		}
	}
	put(file, strings.Replace(shelves, "NAMESPACED", "GLOBAL", 1))
	for _, command := range [][]string{{"check", dir}, {"release", "1.1", dir}} {
		if _, errOut, code = run(command...); code == 0 || !strings.Contains(errOut, "clients of v1.0 break: kind Shelf was NAMESPACED and is GLOBAL") {
			t.Errorf("%s: exit %d %s", command, code, errOut)
		}
	}
	left, err := os.ReadDir(filepath.Join(dir, "versions"))
	if err != nil || len(left) != 1 {
		t.Errorf("there is %v %v", left, err)
	}
}

// TestCatalogueRelease_FreezesACandidate: what it was before does not matter.
func TestCatalogueRelease_FreezesACandidate(t *testing.T) {
	dir := t.TempDir()
	commandtest.WriteFile(t, dir, "shelves.graphqls", shelves)
	commandtest.Must(t, newRoot, "catalogue", "release", "1.0", dir)
	commandtest.WriteFile(t, filepath.Join(dir, "versions"), "versions.yaml", "v1.0: {candidate: true}\n")
	commandtest.WriteFile(t, dir, "shelves.graphqls", strings.Replace(shelves, "  width: Int\n", "  depth: Int\n", 1))
	_, errOut, code := commandtest.Run(t, newRoot, "catalogue", "check", dir)
	if code == 0 || !strings.Contains(errOut, "it is a candidate, so it can be written again") {
		t.Errorf("exit %d %s", code, errOut)
	}
	_, errOut, code = commandtest.Run(t, newRoot, "catalogue", "release", "1.1", dir)
	if code != 2 || !strings.Contains(errOut, "v1.1 cannot follow v1.0, which is a candidate: release v1.0 first") {
		t.Errorf("exit %d %s", code, errOut)
	}
	out := commandtest.Must(t, newRoot, "catalogue", "release", "1.0", dir)
	if !strings.Contains(out, "released v1.0") {
		t.Errorf("%s", out)
	}
	commandtest.Must(t, newRoot, "catalogue", "check", dir)
	commandtest.WriteFile(t, dir, "shelves.graphqls", shelves)
	_, errOut, code = commandtest.Run(t, newRoot, "catalogue", "check", dir)
	if code == 0 || !strings.Contains(errOut, "clients of v1.0 break: Shelf.spec.depth is gone") {
		t.Errorf("exit %d %s", code, errOut)
	}
}

func TestCatalogueRelease_ServesTheMajorBefore(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "shelves.graphqls")
	put := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	catalogue := func(args ...string) (string, string, int) {
		t.Helper()
		return commandtest.Run(t, newRoot, append([]string{"catalogue"}, args...)...)
	}
	release := func(number, text string) string {
		t.Helper()
		put(text)
		out, errOut, code := catalogue("release", number, dir)
		if code != 0 {
			t.Fatalf("%s: exit %d %s%s", number, code, out, errOut)
		}
		return out
	}
	release("1.0", shelves)
	other := strings.Replace(shelves, "type Shelf ", "type Rack ", 1)
	other = strings.Replace(other, `plural: "shelves"`, `plural: "racks"`, 1)
	put(strings.Replace(shelves, "scope: NAMESPACED", "scope: GLOBAL", 1))
	if _, errOut, code := catalogue("release", "2.0", dir); code != 2 || !strings.Contains(errOut, file+":1: v2 cannot be served beside v1.0: Shelf was NAMESPACED and is GLOBAL") {
		t.Errorf("exit %d %s", code, errOut)
	}
	if out := release("2.0", other); strings.Contains(out, "not served any more") || !strings.Contains(out, "clients of the version before may notice: kind Shelf is gone: only clients of the older major see its resources (breaks clients)\n") {
		t.Error(out)
	}
	if _, errOut, code := catalogue("release", "1.1", dir); code != 2 || !strings.Contains(errOut, "there are no new minor versions of a major once a newer one was released") {
		t.Errorf("exit %d %s", code, errOut)
	}
	put(strings.Replace(other, "scope: NAMESPACED", "scope: GLOBAL", 1))
	if _, errOut, code := catalogue("check", dir); code != 2 || !strings.Contains(errOut, "clients of v2.0 break: kind Rack was NAMESPACED and is GLOBAL") {
		t.Errorf("exit %d %s", code, errOut)
	}
	const dropped = "v1.0 is not served any more: v3 was released, and a gateway serves 2 majors\n"
	if out := release("3.0", other); !strings.Contains(out, dropped) {
		t.Error(out)
	}
	if out, errOut, code := catalogue("check", dir); code != 0 || !strings.Contains(out, dropped) {
		t.Errorf("exit %d %s%s", code, out, errOut)
	}
}
