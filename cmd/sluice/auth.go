package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/output"
)

func authCommand(std streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "auth",
		Short:   "Show who you are to the gateway, and what you may do",
		Example: "  sluice auth whoami\n  sluice auth can-i create networks -n web",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return usageError{fmt.Errorf("whoami, can-i, who-can or explain is wanted; see %s --help", cmd.CommandPath())}
		},
	}
	cmd.AddCommand(whoamiCommand(std), canICommand(std), whoCanCommand(std), accessExplainCommand(std))
	return cmd
}

func whoamiCommand(std streams) *cobra.Command {
	var r remote
	var format dataForm
	cmd := &cobra.Command{
		Use:               "whoami",
		Short:             "Print your name and groups as the gateway knows them, and when your credential ends",
		Example:           "  sluice auth whoami\n  sluice auth whoami --context prod -o json",
		Args:              usage(cobra.NoArgs),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := r.client(cmd)
			if err != nil {
				return err
			}
			viewer, err := c.Viewer(cmd.Context())
			if err != nil {
				return err
			}
			return format.print(std, viewer, func() error {
				t := output.NewTable(std.out, []string{"NAME", "SOURCE", "GROUPS", "EXPIRES"})
				groups := output.Text{Text: cell(strings.Join(viewer.Groups, ","))}
				if err := t.Row(output.Text{Text: cell(viewer.Name)}, output.Text{Text: cell(viewer.Source)}, groups, output.Text{Text: expiryText(viewer.ExpiresAt)}); err != nil {
					return err
				}
				return t.Flush()
			})
		},
	}
	r.register(cmd)
	format.register(cmd)
	return cmd
}
