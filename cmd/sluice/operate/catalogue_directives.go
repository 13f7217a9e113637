package operate

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/command"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
	"github.com/sluicegw/sluice/graph/kinds"
)

func catalogueDirectivesCommand(std terminal.Streams) *cobra.Command {
	return &cobra.Command{
		Use:     "directives",
		Short:   "Print the directives and types that a catalogue may use, as SDL for editors",
		Example: "  sluice catalogue directives > directives.graphql",
		Args:    command.Args(0, 0),
		RunE: func(*cobra.Command, []string) error {
			text, err := kinds.Vocabulary()
			if err == nil {
				_, err = fmt.Fprint(std.Out, text)
			}
			return err
		},
	}
}
