package operate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/gateway"
)

// TestPartFile_OfTwoCommands lets two commands write the same file. The one that began later completes it, and the other
// one says so and touches nothing.
func TestPartFile_OfTwoCommands(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.gz")
	write := func(text string) *partFile {
		t.Helper()
		part, err := createPart("to", path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := part.WriteString(text); err != nil {
			t.Fatal(err)
		}
		return part
	}
	first := write("first")
	second := write("second")
	if err := first.complete(); err == nil || !strings.Contains(err.Error(), "another command writes") {
		t.Errorf("the first: %v", err)
	}
	first.discard()
	if err := second.complete(); err != nil {
		t.Fatal(err)
	}
	if err := second.name(); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "second" {
		t.Errorf("%q %v", got, err)
	}
	third := write("third")
	third.discard()
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
		t.Errorf("%v %v", left, err)
	}
}

func TestCheckTarget_RefusesTheStore(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{gateway.StoreFile, "old.db"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := &cobra.Command{}
	cmd.Flags().String("data", dir, "")
	for name, refused := range map[string]bool{gateway.StoreFile: true, "old.db": false, "new.db": false} {
		if err := checkTarget(cmd, filepath.Join(dir, ".", name), "data"); (err != nil) != refused {
			t.Errorf("%s: %v", name, err)
		}
	}
}
