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
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return exit.Usage(fmt.Errorf("%s or %s is wanted; see %s --help",
			strings.Join(names[:last], ", "), names[last], cmd.CommandPath()))
	}
	cmd.AddCommand(commands...)
	return cmd
}
