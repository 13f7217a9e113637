package command

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/exit"
)

// WithSubcommands adds subcommands to a command that does nothing by itself.
func WithSubcommands(cmd *cobra.Command, commands ...*cobra.Command) *cobra.Command {
	var names []string
	for _, c := range commands {
		names = append(names, c.Name())
	}
	last := len(names) - 1
	accepted := names[last]
	if last > 0 {
		accepted = strings.Join(names[:last], ", ") + " or " + accepted
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		given := ""
		if len(args) > 0 {
			given = fmt.Sprintf("%q: ", args[0])
		}
		return exit.Usage(fmt.Errorf("%s%s is wanted; see %s --help", given, accepted, cmd.CommandPath()))
	}
	cmd.AddCommand(commands...)
	return cmd
}
