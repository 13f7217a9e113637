package release_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/graph/kinds"
	"github.com/sluicegw/sluice/graph/release"
)

func TestNext_ReleasesACandidateFirst(t *testing.T) {
	versions, err := readStates(t, "v1.0: {candidate: true}")
	if err != nil {
		t.Fatal(err)
	}
	first, next := release.Number{Major: 1}, release.Number{Major: 1, Minor: 1}
	if err := release.Next(first, versions); err != nil {
		t.Errorf("%v", err)
	}
	if err := release.Next(next, versions); err == nil || !strings.Contains(err.Error(), "release v1.0 first") {
		t.Errorf("%v", err)
	}
}

func TestRead_RefusesACandidateThatIsNotTheNewest(t *testing.T) {
	files := map[string]string{"versions.yaml": "v1.1:\n  deprecated: 2030-01-31\nv1.0: {candidate: true}\n"}
	for _, number := range []string{"v1.0", "v1.1"} {
		files[number+"/shop.graphqls"] = shop
		files[number+"/api.graphql"] = kinds.PrintBare(newest(t, shop).API)
	}
	_, err := release.Read(files, "shop")
	want := "shop/versions/versions.yaml:3: v1.0: only the newest version can be a candidate, and v1.1 is newer"
	if err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
}

// TestFreeze_ReleasesACandidate: it is written again from what the catalogue has then, and what the file of the states
// says of others stays, with its comments.
func TestFreeze_ReleasesACandidate(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, release.Folder, release.StatesFile)
	first, second := release.Number{Major: 1}, release.Number{Major: 1, Minor: 1}
	api := newest(t, shop).API
	write := func(number release.Number, text string) {
		t.Helper()
		if err := release.Write(dir, number, map[string]string{"shop.graphqls": text}, api); err != nil {
			t.Fatal(err)
		}
	}
	write(first, shop)
	write(second, "# of yesterday\n"+shop)
	states := "# why we do it\nv1.0: # the first\n    deprecated: 2030-01-31\nv1.1:\n    candidate: true\n"
	if err := os.WriteFile(name, []byte(states), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := release.Rewrite(dir, second, map[string]string{"shop.graphqls": shop}, api); err != nil {
		t.Fatal(err)
	}
	if err := release.Freeze(dir, second); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadFile(name)
	if want := "# why we do it\nv1.0: # the first\n    deprecated: 2030-01-31\n"; err != nil || string(left) != want {
		t.Errorf("%s %v", left, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "shop.graphqls"), []byte(shop), 0o600); err != nil {
		t.Fatal(err)
	}
	texts, err := release.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	_, released := release.Split(texts)
	versions, err := release.Read(released, "shop")
	if err != nil || len(versions) != 2 || versions[1].Candidate || texts["versions/v1.1/shop.graphqls"] != shop {
		t.Errorf("%v %v", versions, err)
	}
	entries, err := os.ReadDir(filepath.Join(dir, release.Folder))
	if err != nil || len(entries) != 3 {
		t.Errorf("there is %v %v", entries, err)
	}
	if err := os.WriteFile(name, []byte("v1.1: {candidate: true}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := release.Freeze(dir, second); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(name); !os.IsNotExist(err) {
		t.Errorf("a file without states is left: %v", err)
	}
}

// TestFreeze_RefusesAVersionThatTheFileLacks: somebody may change the file between the reading of the catalogue and the
// release.
func TestFreeze_RefusesAVersionThatTheFileLacks(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, release.Folder, release.StatesFile)
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"", "# nothing\n", "[v1.1]\n", "v1.1\n", "v1.0: {deprecated: 2030-01-31}\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := release.Freeze(dir, release.Number{Major: 1, Minor: 1})
		if err == nil || !strings.Contains(err.Error(), "does not have the candidate v1.1") {
			t.Errorf("%q: %v", text, err)
		}
		if left, err := os.ReadFile(name); err != nil || string(left) != text {
			t.Errorf("%q became %q: %v", text, left, err)
		}
	}
}

// TestCheck_ACandidatePromisesWhatItIsServedFrom: the catalogue may break its clients, but must have all its parts.
func TestCheck_ACandidatePromisesWhatItIsServedFrom(t *testing.T) {
	versions, err := readStates(t, "v1.0: {candidate: true}")
	if err != nil {
		t.Fatal(err)
	}
	tighter := strings.Replace(shop, "max: 100", "max: 9", 1)
	if err := release.Check(versions, newest(t, tighter)); err != nil {
		t.Errorf("%v", err)
	}
	without := strings.Replace(shop, `  label: String @constraint(maxLength: 20) @default(value: "none")`+"\n", "", 1)
	err = release.Check(versions, newest(t, without))
	if err == nil || !strings.Contains(err.Error(), "Thing") || !strings.Contains(err.Error(), "it is a candidate, so it can be written again") {
		t.Errorf("%v", err)
	}
}

func TestNext_AllowsTheNextMinorAndTheNextMajor(t *testing.T) {
	versions := ofNumbers(t, map[string]string{"v1.0": shop, "v1.1": shop, "v2.0": shop})
	for number, want := range map[release.Number]string{
		{Major: 2, Minor: 1}: "",
		{Major: 3, Minor: 0}: "",
		{Major: 1, Minor: 2}: "v1.2 cannot follow v2.0: there are no new minor versions of a major once a newer one was released; the next version is v2.1 or v3.0",
		{Major: 2, Minor: 2}: "v2.2 cannot follow v2.0: the next minor version is v2.1, the next major one v3.0",
		{Major: 4, Minor: 0}: "v4.0 cannot follow v2.0: the next minor version is v2.1, the next major one v3.0",
	} {
		err := release.Next(number, versions)
		if want == "" && err != nil || want != "" && (err == nil || err.Error() != want) {
			t.Errorf("%s: %v", number, err)
		}
	}
}
