package operate

import (
	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/command"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
)

func catalogueApplyCommand(std terminal.Streams) *cobra.Command {
	var r gatewayRequest
	cmd := &cobra.Command{
		Use:   "apply DIR",
		Short: "Check a catalogue, and let it replace that of a running gateway",
		Long: "Check a catalogue, replace the files in the running gateway's --catalogue folder by its own, and serve them.\n\n" +
			"The folder is replaced as a whole, and only if the catalogue is served; else it stays as it is. The gateway prints what\n" +
			"clients and stored resources will notice.",
		Example: "  sluice catalogue apply ./kinds --data ./sluice-data\n  sluice catalogue apply ./kinds --server https://sluice.example.com",
		Args:    command.Args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			answer, err := r.apply(cmd, args[0])
			if err == nil {
				r.print(std, answer)
			}
			return err
		},
	}
	r.register(cmd)
	return cmd
}
