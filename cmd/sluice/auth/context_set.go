package auth

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/command"
	"github.com/sluicegw/sluice/cmd/sluice/credential"
	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/remote"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
	"github.com/sluicegw/sluice/graph/client"
)

func contextSetCommand(std terminal.Streams) *cobra.Command {
	var given credential.Context
	cmd := &cobra.Command{
		Use:   "set NAME [flags] [-- COMMAND [ARGUMENT...]]",
		Short: "Make a context, or change it",
		Long: "Make a context, or change what the flags name of one that exists; an empty value takes something away. What follows -- is a\n" +
			"program with its arguments that prints a token; it is run without a shell. The first context becomes the current one.",
		Example: "  sluice context set prod --server https://gateway.example.com --ca ca.pem --token-file token\n" +
			"  sluice context set prod -n web\n" +
			"  sluice context set prod -- vault read -field=token sluice/creds/me",
		Args: command.CheckArgs(func(cmd *cobra.Command, args []string) error {
			if n := cmd.ArgsLenAtDash(); n == 1 && len(args) > 1 || n < 0 && len(args) == 1 {
				return nil
			}
			return errors.New("one name is wanted, and after -- a program")
		}),
		ValidArgsFunction: remote.CompleteContexts,
		RunE: func(cmd *cobra.Command, args []string) error {
			name, command := args[0], args[1:]
			if err := credential.CheckName(name); err != nil {
				return exit.Usage(err)
			}
			return changeContexts(cmd, std, name, func(f *credential.File) (string, error) {
				c := f.Contexts[name]
				if err := setContext(cmd, &c, given, command); err != nil {
					return "", err
				}
				f.Contexts[name] = c
				if f.Current != "" {
					return "is set", nil
				}
				f.Current = name
				return "is set, and is the current one", nil
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&given.Server, "server", "", "URL of the gateway")
	f.StringVarP(&given.Namespace, "namespace", "n", "", "namespace of commands that name none")
	remote.RegisterAccess(cmd, &given.Access)
	return cmd
}

// setContext sets the fields of c whose flags were given. It makes paths absolute, because later commands may run in
// another folder.
func setContext(cmd *cobra.Command, c *credential.Context, given credential.Context, command []string) error {
	changed := cmd.Flags().Changed
	if changed("server") {
		c.Server = given.Server
	}
	if changed("namespace") {
		c.Namespace = given.Namespace
	}
	to := c.Files()
	for flag, path := range given.Files() {
		if !changed(flag) {
			continue
		}
		*to[flag] = *path
		if *path != "" {
			absolute, err := filepath.Abs(*path)
			if err != nil {
				return fmt.Errorf("%s: %w", flag, err)
			}
			*to[flag] = absolute
		}
	}
	if changed("plaintext-token") {
		c.PlaintextToken = given.PlaintextToken
	}
	if _, err := client.New(client.Config{Server: c.Server}); err != nil {
		return err
	}
	switch {
	case len(command) > 0 && given.TokenFile != "":
		return errors.New("token-file and a program: only one of them can be used")
	case len(command) > 0:
		c.TokenFile, c.TokenCommand = "", command
	case changed("token-file"):
		c.TokenCommand = nil
	}
	return nil
}
