package auth

import (
	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/command"
	"github.com/sluicegw/sluice/cmd/sluice/credential"
	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/remote"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
)

func contextUseCommand(std terminal.Streams) *cobra.Command {
	return &cobra.Command{
		Use:               "use NAME",
		Short:             "Make a context the current one",
		Example:           "  sluice context use prod",
		Args:              command.Args(1, 1),
		ValidArgsFunction: remote.CompleteContexts,
		RunE: func(cmd *cobra.Command, args []string) error {
			return changeContexts(cmd, std, args[0], func(f *credential.File) (string, error) {
				if _, err := f.Find(args[0]); err != nil {
					return "", exit.NotFound(err)
				}
				f.Current = args[0]
				return "is the current one", nil
			})
		},
	}
}
