package operate

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/command"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
)

func CatalogueCommand(std terminal.Streams) *cobra.Command {
	return command.WithSubcommands(
		&cobra.Command{
			Use:     "catalogue",
			Short:   "Check, print and compare catalogues of kinds, and give them to a running gateway",
			Long:    "Check, print and compare catalogues of kinds, and give them to a running gateway.\n\nA catalogue is a folder of SDL files, as `sluice serve --catalogue` takes it. Without a folder, the built-in kinds are used.",
			Example: "  sluice catalogue check ./kinds\n  sluice catalogue diff ./kinds --from ./kinds-of-yesterday",
			// There is nothing to clean up, so a signal may end the process immediately.
			PersistentPreRun: func(*cobra.Command, []string) { signal.Reset(os.Interrupt, syscall.SIGTERM) },
		},
		catalogueCheckCommand(std),
		cataloguePrintCommand(std),
		catalogueDiffCommand(std),
		catalogueApplyCommand(std),
		catalogueReloadCommand(std),
		cataloguePurgeCommand(std),
		catalogueInitCommand(std),
		catalogueDirectivesCommand(std),
		catalogueReleaseCommand(std),
		catalogueUsageCommand(std),
	)
}

// directory returns the directory in the arguments of a command; empty if there is none.
func directory(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}
