package auth

import (
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/command"
	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/cmd/sluice/remote"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
	"github.com/sluicegw/sluice/graph/client"
)

func whoamiCommand(std terminal.Streams) *cobra.Command {
	var r remote.Flags
	var format command.OutputFlag
	cmd := &cobra.Command{
		Use:     "whoami",
		Short:   "Print your name and groups as the gateway knows them, and when your credential ends",
		Example: "  sluice auth whoami\n  sluice auth whoami --context prod -o json",
		Args:    command.Args(0, 0),
		RunE: remote.With(r.Client, func(cmd *cobra.Command, c *client.Client, _ []string) error {
			viewer, err := c.Viewer(cmd.Context())
			if err != nil {
				return err
			}
			row := []string{
				output.Cell(viewer.Name),
				output.Cell(viewer.Source),
				output.Cell(strings.Join(viewer.Groups, ",")),
				expiryText(viewer.ExpiresAt),
			}
			return format.Print(
				std,
				viewer,
				command.Table{Titles: []string{"NAME", "SOURCE", "GROUPS", "EXPIRES"}, Rows: [][]string{row}}.To(std),
			)
		}),
	}
	r.Register(cmd)
	format.Register(cmd)
	return cmd
}

// expiryText formats the time when a credential expires.
func expiryText(at *time.Time) string {
	if at == nil {
		return "never"
	}
	return at.Local().Format(time.RFC3339)
}
