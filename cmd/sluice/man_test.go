package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/commandtest"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
)

func TestMan_HasAPageForEachCommandThatIsTheSameEachTime(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1767225600")
	first, second := filepath.Join(t.TempDir(), "man1"), t.TempDir()
	commandtest.Must(t, newRoot, "man", first)
	commandtest.Must(t, newRoot, "man", second)
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		name := strings.ReplaceAll(cmd.CommandPath(), " ", "-") + ".1"
		page, err := os.ReadFile(filepath.Join(first, name))
		if err != nil {
			t.Error(err)
		}
		again, err := os.ReadFile(filepath.Join(second, name))
		if err != nil || string(again) != string(page) {
			t.Errorf("%s is another one the second time: %v", name, err)
		}
		if !strings.Contains(string(page), "Jan 2026") {
			t.Errorf("%s does not have the date", name)
		}
		for _, c := range cmd.Commands() {
			walk(c)
		}
	}
	walk(newRoot(terminal.Streams{}))
}
