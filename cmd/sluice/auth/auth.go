// Package auth has the commands about contexts and callers: context, login, logout and auth.
package auth

import (
	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/command"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
)

func AuthCommand(std terminal.Streams) *cobra.Command {
	return command.WithSubcommands(&cobra.Command{
		Use:     "auth",
		Short:   "Show who you are to the gateway, and what you may do",
		Example: "  sluice auth whoami\n  sluice auth can-i create networks -n web",
	}, whoamiCommand(std), canICommand(std), whoCanCommand(std), accessExplainCommand(std))
}
