package read_test

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/commandtest"
	"github.com/sluicegw/sluice/cmd/sluice/read"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
)

// newRoot returns the commands that the tests of this package run.
func newRoot(std terminal.Streams) *cobra.Command {
	return commandtest.NewRoot(
		read.APIResourcesCommand(std), read.DescribeCommand(std), read.DiffCommand(std), read.ExplainCommand(std),
		read.GetCommand(std), read.RevealCommand(std), read.TreeCommand(std), read.WaitCommand(std), read.WatchCommand(std),
	)
}

// refusal is a command line that is refused before anything is read.
type refusal struct {
	args string
	says string
}

// refuse runs command lines that are refused with the exit code of wrong usage, and one line that says why.
func refuse(t *testing.T, lines ...refusal) {
	t.Helper()
	server := commandtest.StartGateway(t).URL
	for _, line := range lines {
		args := append(strings.Fields(line.args), "--server", server)
		out, errOut, code := commandtest.Run(t, newRoot, args...)
		if code != 2 || out != "" || !strings.Contains(errOut, line.says) || strings.Count(errOut, "\n") != 1 {
			t.Errorf("%s: exit %d %q %q, want 2 and %q", line.args, code, out, errOut, line.says)
		}
	}
}
