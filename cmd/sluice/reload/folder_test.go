package reload_test

import (
	"errors"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicegw/sluice/cmd/sluice/reload"
)

// files are two that belong together: a reader must never see them apart.
func files(n string) map[string]string {
	return map[string]string{"a.graphqls": "a" + n, "b.graphqls": "b" + n}
}

// known are the paths of files that folders have in these tests.
func known(name string) bool {
	folder := path.Dir(name)
	return name == "versions/" || name == "versions/v1/" || path.Ext(name) == ".graphqls" && (folder == "." || folder == "versions/v1")
}

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func read(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		out[e.Name()] = string(text)
	}
	return out
}

// target is a folder with files, and the folder that it is in.
func target(t *testing.T) (dir, parent string) {
	t.Helper()
	parent = t.TempDir()
	dir = filepath.Join(parent, "kinds")
	if err := os.Mkdir(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	write(t, dir, files("1"))
	return dir, parent
}

func TestAFolderIsReplacedAsAWhole(t *testing.T) {
	dir, parent := target(t)
	s, err := reload.Stage(dir, map[string]string{"b.graphqls": "b2", "c.graphqls": "c2"}, known)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(files("1"), read(t, dir)); diff != "" {
		t.Errorf("before: %s", diff)
	}
	if err := s.Replace(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"b.graphqls": "b2", "c.graphqls": "c2"}, read(t, dir)); diff != "" {
		t.Error(diff)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o750 {
		t.Errorf("its mode is %v", info.Mode())
	}
	if err := s.Discard(); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(parent); len(left) != 1 {
		t.Errorf("beside it there is %v", left)
	}
}

// TestAReaderSeesOneFolderOrTheOther: there is no moment without the folder, and
// one that was opened stays whole.
func TestAReaderSeesOneFolderOrTheOther(t *testing.T) {
	dir, _ := target(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 200 {
			for _, n := range []string{"2", "3"} {
				s, err := reload.Stage(dir, files(n), known)
				if err == nil {
					err = s.Replace()
				}
				if err != nil {
					t.Error(err)
					return
				}
				if err := s.Discard(); err != nil {
					t.Error(err)
				}
			}
		}
	}()
	for {
		select {
		case <-done:
			return
		default:
		}
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatalf("there is no folder: %v", err)
		}
		a, errA := root.ReadFile("a.graphqls")
		b, errB := root.ReadFile("b.graphqls")
		_ = root.Close()
		if errA == nil && errB == nil && string(a)[1:] != string(b)[1:] { // an error: the old one was removed meanwhile
			t.Fatalf("%s with %s", a, b)
		}
	}
}

func TestAReplacementCanBeUndone(t *testing.T) {
	dir, parent := target(t)
	s, err := reload.Stage(dir, files("2"), known)
	if err == nil {
		err = errors.Join(s.Replace(), s.Replace())
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Discard(); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(files("1"), read(t, dir)); diff != "" {
		t.Error(diff)
	}
	if left, _ := os.ReadDir(parent); len(left) != 1 {
		t.Errorf("beside it there is %v", left)
	}
}

// TestWhatACrashLeavesIsOneFolderOrTheOther, and what is beside it goes at the next
// replacement or when the folder is tidied up.
func TestWhatACrashLeavesIsOneFolderOrTheOther(t *testing.T) {
	for name, c := range map[string]struct {
		crash func(s *reload.Staged) error // what was done before
		want  map[string]string
	}{
		"before":        {func(*reload.Staged) error { return nil }, files("1")},
		"after":         {(*reload.Staged).Replace, files("2")},
		"after an undo": {func(s *reload.Staged) error { return errors.Join(s.Replace(), s.Replace()) }, files("1")},
	} {
		for how, tidy := range map[string]func(dir string) error{
			"tidied": reload.Tidy,
			"the next one": func(dir string) error {
				s, err := reload.Stage(dir, files("3"), known)
				if err == nil {
					err = s.Discard()
				}
				return err
			},
		} {
			t.Run(name+", "+how, func(t *testing.T) {
				dir, parent := target(t)
				s, err := reload.Stage(dir, files("2"), known)
				if err == nil {
					err = c.crash(s)
				}
				if err != nil {
					t.Fatal(err)
				}
				other := filepath.Join(parent, ".kinds.backup")
				if err := os.Mkdir(other, 0o700); err != nil {
					t.Fatal(err)
				}
				if err := tidy(dir); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(c.want, read(t, dir)); diff != "" {
					t.Error(diff)
				}
				if left, _ := os.ReadDir(parent); len(left) != 2 || left[0].Name() != ".kinds.backup" {
					t.Errorf("beside it there is %v", left)
				}
			})
		}
	}
}

func TestALinkGoesOnToLeadToTheFolder(t *testing.T) {
	dir, parent := target(t)
	link := filepath.Join(parent, "link")
	if err := os.Symlink("kinds", link); err != nil {
		t.Fatal(err)
	}
	s, err := reload.Stage(link, files("2"), known)
	if err == nil {
		err = s.Replace()
	}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(files("2"), read(t, dir)); diff != "" {
		t.Error(diff)
	}
	if to, err := os.Readlink(link); err != nil || to != "kinds" {
		t.Errorf("the link leads to %s, %v", to, err)
	}
}

func TestNothingIsLostThatIsNoFileOfACatalogue(t *testing.T) {
	for _, other := range []string{"README.md", ".git/config", "sub.graphqls/x"} {
		t.Run(other, func(t *testing.T) {
			dir, _ := target(t)
			if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, other)), 0o700); err != nil {
				t.Fatal(err)
			}
			write(t, dir, map[string]string{other: "x"})
			name, _, _ := strings.Cut(other, "/")
			if _, err := reload.Stage(dir, files("2"), known); err == nil || !strings.Contains(err.Error(), "holds "+name+", which would be lost") {
				t.Errorf("it says %v", err)
			}
		})
	}
}

func TestStage_ReplacesTheFoldersBelow(t *testing.T) {
	dir, _ := target(t)
	for _, n := range []string{"1", "2"} {
		s, err := reload.Stage(dir, map[string]string{"a.graphqls": n, "versions/v1/a.graphqls": n}, known)
		if err == nil {
			err = s.Replace()
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Discard(); err != nil {
			t.Error(err)
		}
		text, err := os.ReadFile(filepath.Join(dir, "versions", "v1", "a.graphqls"))
		if err != nil || string(text) != n {
			t.Errorf("%s: %v", text, err)
		}
		if info, err := os.Stat(filepath.Join(dir, "versions")); err != nil || info.Mode().Perm() != 0o750 {
			t.Errorf("the mode of a folder below is %v", info.Mode())
		}
	}
}

func TestNamesStayInTheFolder(t *testing.T) {
	for _, name := range []string{"../x.graphqls", "a/x.graphqls", "/x.graphqls", "x.txt", ""} {
		dir, parent := target(t)
		if _, err := reload.Stage(dir, map[string]string{name: "x"}, known); err == nil || !strings.Contains(err.Error(), "is no name of a file") {
			t.Errorf("%q: %v", name, err)
		}
		if left, _ := os.ReadDir(parent); len(left) != 1 {
			t.Errorf("%q: beside it there is %v", name, left)
		}
	}
}
