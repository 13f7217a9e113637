package auth

import (
	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/commandtest"
	"github.com/sluicegw/sluice/cmd/sluice/read"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
)

// newRoot returns the commands that the tests of this package run.
func newRoot(std terminal.Streams) *cobra.Command {
	return commandtest.NewRoot(
		ContextCommand(std), LoginCommand(std), LogoutCommand(std), AuthCommand(std),
		read.APIResourcesCommand(std), read.GetCommand(std),
	)
}
