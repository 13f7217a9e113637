package write_test

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/command"
	"github.com/sluicegw/sluice/cmd/sluice/commandtest"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
	"github.com/sluicegw/sluice/cmd/sluice/write"
)

// newRoot returns the commands that the tests of this package run.
func newRoot(std terminal.Streams) *cobra.Command {
	return commandtest.NewRoot(write.ControlCommand(std))
}

func TestControl_ReportsOnceThatItsOutputCannotBeWritten(t *testing.T) {
	commandtest.FreshContexts(t)
	gateway := commandtest.StartGateway(t)
	args := []string{"control", "network", "--server", gateway.URL}
	if out := commandtest.Must(t, newRoot, args...); out != "Network is controlled\n" {
		t.Errorf("%q", out)
	}
	var errs strings.Builder
	std := terminal.Streams{In: strings.NewReader(""), Out: commandtest.FullDisk{}, Err: &errs}
	code := command.Run(t.Context(), newRoot, args, std)
	if code != 1 || strings.Count(errs.String(), "no space left") != 1 {
		t.Errorf("exit %d %s", code, errs.String())
	}
}
