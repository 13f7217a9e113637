package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/terminal"
)

func TestEveryCommandHasAnExampleAndASentence(t *testing.T) {
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		if cmd.Short == "" {
			t.Errorf("%s has no sentence", cmd.CommandPath())
		}
		if cmd.HasParent() && !strings.Contains(cmd.Example, cmd.CommandPath()) {
			t.Errorf("%s --help has no example of %[1]s:\n%s", cmd.CommandPath(), cmd.Example)
		}
		for _, line := range strings.Split(cmd.Example, "\n") {
			if line != "" && !strings.HasPrefix(line, "  ") {
				t.Errorf("%s: the example %q is not indented by two", cmd.CommandPath(), line)
			}
		}
		for _, c := range cmd.Commands() {
			walk(c)
		}
	}
	walk(newRoot(terminal.Streams{}))
}

func TestTheHelpSaysWhatTheExitCodesMean(t *testing.T) {
	root := newRoot(terminal.Streams{})
	for _, text := range []string{"0 done", "1 failed", "2 the command line", "3 a resource"} {
		if !strings.Contains(root.Long, text) {
			t.Errorf("the help does not say %q", text)
		}
	}
}
