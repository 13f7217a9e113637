package operate

import (
	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/command"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
)

func catalogueReloadCommand(std terminal.Streams) *cobra.Command {
	var r gatewayRequest
	cmd := &cobra.Command{
		Use:   "reload",
		Short: "Let a running gateway read its --catalogue folder again",
		Long: "Let a running gateway read its --catalogue folder again, and print what that changes.\n\n" +
			"SIGHUP does the same, but it accepts no catalogue that breaks what is stored, and the answer is in the log.",
		Example: "  sluice catalogue reload --data ./sluice-data\n  sluice catalogue reload --server https://sluice.example.com",
		Args:    command.Args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			answer, err := r.send(cmd)
			if err == nil {
				r.print(std, answer)
			}
			return err
		},
	}
	r.register(cmd)
	return cmd
}
