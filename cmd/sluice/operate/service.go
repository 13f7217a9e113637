package operate

import (
	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/command"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
)

// ServiceCommand returns the commands about resource services.
func ServiceCommand(std terminal.Streams) *cobra.Command {
	return command.WithSubcommands(
		&cobra.Command{
			Use:     "service",
			Short:   "Ask the resource services of other teams",
			Long:    "Ask the resource services of other teams. A gateway serves what they own; see docs/services.md.",
			Example: "  sluice service pull http://127.0.0.1:9310\n  sluice service test http://127.0.0.1:9310",
		},
		servicePullCommand(std),
		serviceTestCommand(std),
	)
}
