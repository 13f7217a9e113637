package operate

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/command"
	"github.com/sluicegw/sluice/cmd/sluice/sdl"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
	"github.com/sluicegw/sluice/graph/kinds"
)

func cataloguePrintCommand(std terminal.Streams) *cobra.Command {
	return &cobra.Command{
		Use:     "print [DIR]",
		Short:   "Print the API that is derived from a catalogue, as SDL",
		Example: "  sluice catalogue print ./kinds > api.graphql",
		Args:    command.Args(0, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			c, err := sdl.Read(directory(args))
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(std.Out, kinds.Print(c.API, nil))
			return err
		},
	}
}
