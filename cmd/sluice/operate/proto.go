package operate

import (
	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/command"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
)

// ProtoCommand returns the commands about the protobuf of a catalogue.
func ProtoCommand(std terminal.Streams) *cobra.Command {
	return command.WithSubcommands(
		&cobra.Command{
			Use:     "proto",
			Short:   "Make protobuf of the kinds of a catalogue",
			Long:    "Make protobuf of the kinds of a catalogue, which gateways serve with --service-listen; see docs/grpc.md.",
			Example: "  sluice proto print ./kinds --numbers numbers.txt",
		},
		protoPrintCommand(std),
	)
}
