package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/graph/client"
)

func authCommand(std streams) *cobra.Command {
	return withCommands(&cobra.Command{
		Use:     "auth",
		Short:   "Show who you are to the gateway, and what you may do",
		Example: "  sluice auth whoami\n  sluice auth can-i create networks -n web",
	}, whoamiCommand(std), canICommand(std), whoCanCommand(std), accessExplainCommand(std))
}

func whoamiCommand(std streams) *cobra.Command {
	var r remote
	var format dataForm
	cmd := &cobra.Command{
		Use:     "whoami",
		Short:   "Print your name and groups as the gateway knows them, and when your credential ends",
		Example: "  sluice auth whoami\n  sluice auth whoami --context prod -o json",
		Args:    usage(cobra.NoArgs),
		RunE: with(r.client, func(cmd *cobra.Command, c *client.Client, _ []string) error {
			viewer, err := c.Viewer(cmd.Context())
			if err != nil {
				return err
			}
			row := []string{cell(viewer.Name), cell(viewer.Source), cell(strings.Join(viewer.Groups, ",")), expiryText(viewer.ExpiresAt)}
			return format.print(std, viewer, table{[]string{"NAME", "SOURCE", "GROUPS", "EXPIRES"}, [][]string{row}}.to(std))
		}),
	}
	r.register(cmd)
	format.register(cmd)
	return cmd
}
