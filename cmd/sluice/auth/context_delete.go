package auth

import (
	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/command"
	"github.com/sluicegw/sluice/cmd/sluice/credential"
	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/remote"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
)

func contextDeleteCommand(std terminal.Streams) *cobra.Command {
	return &cobra.Command{
		Use:               "delete NAME",
		Short:             "Delete a context, and its login",
		Example:           "  sluice context delete prod",
		Args:              command.Args(1, 1),
		ValidArgsFunction: remote.CompleteContexts,
		RunE: func(cmd *cobra.Command, args []string) error {
			var login credential.Login
			err := changeContexts(cmd, std, args[0], func(f *credential.File) (string, error) {
				if _, err := f.Find(args[0]); err != nil {
					return "", exit.NotFound(err)
				}
				logins := credential.LoginsPath(remote.ContextsPath())
				var err error
				login, _, err = credential.RemoveLogin(cmd.Context(), logins, args[0])
				if err != nil {
					return "", err
				}
				delete(f.Contexts, args[0])
				if f.Current == args[0] {
					f.Current = ""
				}
				return "is deleted", nil
			})
			if err == nil {
				// The keyring may wait until a person unlocks it. Therefore this is done when the file is no longer
				// locked.
				login.ForgetKey(cmd.Context(), credential.SystemKeyring())
			}
			return err
		},
	}
}
