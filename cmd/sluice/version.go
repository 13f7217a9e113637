package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/command"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
	"github.com/sluicegw/sluice/cmd/sluice/version"
)

func versionCommand(std terminal.Streams) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  sluice version",
		Args:    command.Args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprint(std.Out, version.Line())
			return err
		},
	}
}
