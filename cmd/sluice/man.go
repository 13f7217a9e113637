package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/sluicegw/sluice/cmd/sluice/command"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
	"github.com/sluicegw/sluice/cmd/sluice/version"
)

func manCommand(std terminal.Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "man DIR",
		Short: "Write the manual pages of all commands into a folder",
		Long: "Write the manual pages of all commands into a folder, which is made if there is none: sluice.1, sluice-get.1 and so\n" +
			"on. Their date is that of the variable SOURCE_DATE_EPOCH, in seconds since 1970, or today. The packages have them.",
		Example: "  sluice man ~/.local/share/man/man1",
		Args:    command.Args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			root := cmd.Root()
			root.DisableAutoGenTag = true
			header := &doc.GenManHeader{Section: "1", Source: "sluice " + version.Text(), Manual: "Sluice"}
			if err := doc.GenManTree(root, header, args[0]); err != nil {
				return err
			}
			_, err := fmt.Fprintf(std.Out, "the manual pages are in %s\n", args[0])
			return err
		},
	}
}
