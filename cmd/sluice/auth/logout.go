package auth

import (
	"context"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/command"
	"github.com/sluicegw/sluice/cmd/sluice/credential"
	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/cmd/sluice/remote"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
)

func LogoutCommand(std terminal.Streams) *cobra.Command {
	var r remote.Flags
	cmd := &cobra.Command{
		Use:     "logout",
		Short:   "Forget the login of a context",
		Long:    "Forget the login of the current context, or of the one that --context names, and have its issuer revoke it.",
		Example: "  sluice logout\n  sluice logout --context prod",
		Args:    command.Args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			name, err := namedContext(cmd, &r)
			if err != nil {
				return err
			}
			return logOut(cmd.Context(), std, r.Access, name)
		},
	}
	cmd.Flags().StringVar(&r.Context, "context", "", "context to log out of (default: the current one)")
	return cmd
}

// logOut removes a login and asks the issuer to revoke it.
func logOut(ctx context.Context, std terminal.Streams, access credential.Access, name string) error {
	path := credential.LoginsPath(remote.ContextsPath())
	l, found, err := credential.FindLogin(path, name)
	if err != nil {
		return exit.Usage(err)
	}
	if found {
		// What is removed and revoked may be a newer login than the one that was found.
		l, found, err = credential.RemoveLogin(ctx, path, name)
	}
	switch {
	case err != nil:
		return err
	case !found:
		_, err := fmt.Fprintf(std.Out, "%s has no login\n", output.Printable(name))
		return err
	}
	ring := credential.SystemKeyring()
	err = l.Open(ctx, ring)
	if err == nil {
		l.ForgetKey(ctx, ring)
	}
	var there *http.Client
	if err == nil {
		there, err = remote.IssuerClient(ctx, access)
	}
	if err == nil {
		err = credential.Revoke(ctx, there, l)
	}
	if err != nil {
		_, _ = fmt.Fprintf(
			std.Err,
			"sluice: warning: the issuer has not revoked the login, so a copy of it stays valid: %s\n",
			output.Printable(err.Error()),
		)
	}
	_, err = fmt.Fprintf(std.Out, "logged out of %s\n", output.Printable(name))
	return err
}
