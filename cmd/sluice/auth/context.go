package auth

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/command"
	"github.com/sluicegw/sluice/cmd/sluice/credential"
	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/cmd/sluice/remote"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
)

func ContextCommand(std terminal.Streams) *cobra.Command {
	return command.WithSubcommands(&cobra.Command{
		Use:   "context",
		Short: "Keep the gateways that you speak to, and how they know you",
		Long: "Keep the gateways that you speak to, and how they know you.\n\n" +
			"A context is a server with a namespace, a CA and credentials, under a name. Commands use the current one, or the one that\n" +
			"--context names; flags and variables of the environment take precedence over it. The file is contexts.yaml in the folder\n" +
			"sluice of your settings, or what SLUICE_CONTEXTS names; it has the mode 0600.",
		Example: "  sluice context set prod --server https://gateway.example.com\n  sluice context use prod\n  sluice context list",
	}, contextListCommand(std), contextUseCommand(std), contextSetCommand(std), contextDeleteCommand(std))
}

// changeContexts changes the file of contexts and prints the name of the changed context with the result of change.
func changeContexts(
	cmd *cobra.Command,
	std terminal.Streams,
	name string,
	change func(*credential.File) (string, error),
) error {
	var result string
	var absent exit.NotFoundError
	switch err := credential.UpdateContexts(cmd.Context(), remote.ContextsPath(), func(f *credential.File) (err error) {
		result, err = change(f)
		return err
	}); {
	case errors.As(err, &absent) || cmd.Context().Err() != nil:
		return err
	case err != nil:
		return exit.Usage(errors.New(exit.OneLine(err)))
	}
	_, err := fmt.Fprintf(std.Out, "context %s %s\n", output.Printable(name), result)
	return err
}
