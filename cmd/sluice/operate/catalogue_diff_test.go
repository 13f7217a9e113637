package operate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/cmd/sluice/commandtest"
)

func TestCatalogueDiff_ComparesReleasedVersions(t *testing.T) {
	dir := t.TempDir()
	put := func(text string) { commandtest.WriteFile(t, dir, "shelves.graphqls", text) }
	diff := func(args ...string) (string, string, int) {
		t.Helper()
		return commandtest.Run(t, newRoot, append([]string{"catalogue", "diff", dir}, args...)...)
	}
	put(shelves)
	if _, errOut, code := diff("--from-version", "v1.0"); code != 2 ||
		!strings.Contains(errOut, "from-version: v1.0 was not released: no version of this catalogue was") {
		t.Errorf("nothing was released: exit %d %s", code, errOut)
	}
	commandtest.Must(t, newRoot, "catalogue", "release", "1.0", dir)
	second := strings.Replace(shelves, "  width: Int\n", "  width: Int\n  height: Int\n", 1)
	put(second)
	commandtest.Must(t, newRoot, "catalogue", "release", "1.1", dir)
	put(strings.Replace(second, "  height: Int\n", "  height: Int\n  depth: Int\n", 1))
	for args, want := range map[string]string{
		"--from-version v1.0 --to-version v1.1": "versions/v1.1/shelves.graphqls:7: Shelf.spec.height is new\n",
		"--from-version 1.0 --to-version 1.1":   "versions/v1.1/shelves.graphqls:7: Shelf.spec.height is new\n",
		"--from-version v1.1":                   "shelves.graphqls:8: Shelf.spec.depth is new\n",
		"--from-version v1.0":                   "shelves.graphqls:8: Shelf.spec.depth is new\nshelves.graphqls:7: Shelf.spec.height is new\n",
		"--from-version v1.0 --to-version v1.0": "",
	} {
		out, errOut, code := diff(strings.Fields(args)...)
		if out = strings.ReplaceAll(out, dir+"/", ""); code != 0 || out != want || errOut != "" {
			t.Errorf("%s: exit %d %q %s", args, code, out, errOut)
		}
	}
	back := "--from-version v1.1 --to-version v1.0"
	if out, _, code := diff(strings.Fields(back)...); code != 1 || !strings.Contains(out, "Shelf.spec.height is gone") {
		t.Errorf("%s: exit %d %s", back, code, out)
	}
	for args, want := range map[string]string{
		"--from-version v1.7":                   "from-version: v1.7 was not released; these versions were: v1.0, v1.1",
		"--from-version v1.0 --to-version v2.0": "to-version: v2.0 was not released; these versions were: v1.0, v1.1",
		"--from-version v1":                     `from-version: "v1" is no version: MAJOR.MINOR is accepted, such as v1.0`,
		"--to-version v1.0":                     "to-version: name the version to compare with by --from-version",
		"--from-version v1.0 --from " + dir:     "from, from-version: give one of them",
		"--from-version v1.0 --data d":          "from-version: it has no effect with --data or --admin-socket",
		"--to-version v1.0 --server http://a":   "to-version: it has no effect with --server or --context",
	} {
		if out, errOut, code := diff(strings.Fields(args)...); code != 2 || !strings.Contains(errOut, want) || out != "" {
			t.Errorf("%s: exit %d %s%s", args, code, out, errOut)
		}
	}
}

func TestCatalogueDiff_ComparesVersionsThatWereWithdrawn(t *testing.T) {
	dir := t.TempDir()
	commandtest.WriteFile(t, dir, "shelves.graphqls", shelves)
	commandtest.Must(t, newRoot, "catalogue", "release", "1.0", dir)
	states := "v1.0: {withdrawn: 2030-01-31, why: use v2.0}\n"
	commandtest.WriteFile(t, filepath.Join(dir, "versions"), "versions.yaml", states)
	if err := os.Remove(filepath.Join(dir, "shelves.graphqls")); err != nil {
		t.Fatal(err)
	}
	commandtest.WriteFile(t, dir, "shelves.graphqls", strings.Replace(shelves, "  width: Int\n", "", 1))
	out, errOut, code := commandtest.Run(t, newRoot, "catalogue", "diff", dir, "--from-version", "v1.0")
	if code != 1 || !strings.HasPrefix(out, dir+"/shelves.graphqls:5: Shelf.spec.width is gone") {
		t.Errorf("exit %d %s%s", code, out, errOut)
	}
}

// TestCatalogueDiff_SaysWhatTheOlderMajorStillShows: a gateway does not refuse the catalogue for it.
func TestCatalogueDiff_SaysWhatTheOlderMajorStillShows(t *testing.T) {
	dir := t.TempDir()
	commandtest.WriteFile(t, dir, "shelves.graphqls", shelves)
	commandtest.Must(t, newRoot, "catalogue", "release", "1.0", dir)
	commandtest.WriteFile(t, dir, "shelves.graphqls", strings.Replace(shelves, "  width: Int\n", "", 1))
	diff := []string{"catalogue", "diff", dir, "--from-version", "v1.0", "--fail-on", "breaks-data"}
	out, errOut, code := commandtest.Run(t, newRoot, diff...)
	if code != 1 || !strings.Contains(out, "Shelf.spec.width is gone: what is stored of it is not shown any more (breaking)\n") {
		t.Errorf("exit %d %s%s", code, out, errOut)
	}
	commandtest.Must(t, newRoot, "catalogue", "release", "2.0", dir)
	out, errOut, code = commandtest.Run(t, newRoot, diff...)
	if code != 0 || !strings.Contains(out, "Shelf.spec.width is gone: only clients of the older major see what is stored of it (breaks clients)\n") {
		t.Errorf("exit %d %s%s", code, out, errOut)
	}
}
