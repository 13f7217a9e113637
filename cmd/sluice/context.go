package main

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/credential"
	"github.com/sluicegw/sluice/graph/client"
)

func contextCommand(std streams) *cobra.Command {
	return withCommands(&cobra.Command{
		Use:   "context",
		Short: "Keep the gateways that you speak to, and how they know you",
		Long: "Keep the gateways that you speak to, and how they know you.\n\n" +
			"A context is a server with a namespace, a CA and credentials, under a name. Commands use the current one, or the one that\n" +
			"--context names; flags and variables of the environment take precedence over it. The file is contexts.yaml in the folder\n" +
			"sluice of your settings, or what SLUICE_CONTEXTS names; it has the mode 0600.",
		Example: "  sluice context set prod --server https://gateway.example.com\n  sluice context use prod\n  sluice context list",
	}, contextListCommand(std), contextUseCommand(std), contextSetCommand(std), contextDeleteCommand(std))
}

// contextRow is one context of the list.
type contextRow struct {
	Name       string `json:"name" yaml:"name"`
	Current    bool   `json:"current" yaml:"current"`
	Server     string `json:"server" yaml:"server"`
	Namespace  string `json:"namespace" yaml:"namespace"`
	Credential string `json:"credential" yaml:"credential"`
}

func contextListCommand(std streams) *cobra.Command {
	var format dataForm
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the contexts; the current one has an asterisk",
		Example: "  sluice context list\n  sluice context list -o json",
		Args:    usage(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			file, err := credential.ReadContexts(contextsPath())
			if err != nil {
				return usageError{err}
			}
			list, shown := []contextRow{}, table{titles: []string{"CURRENT", "NAME", "SERVER", "NAMESPACE", "CREDENTIAL"}}
			for _, name := range file.Names() {
				c := file.Contexts[name]
				kind := c.Kind()
				if _, found, err := credential.FindLogin(credential.LoginsPath(contextsPath()), name); err != nil {
					return usageError{err}
				} else if found && kind == credential.NoCredential {
					kind = "login"
				}
				row := contextRow{name, name == file.Current, redacted(c.Server), c.Namespace, kind}
				mark := ""
				if row.Current {
					mark = "*"
				}
				list = append(list, row)
				shown.rows = append(shown.rows, []string{mark, cell(name), cell(row.Server), cell(row.Namespace), kind})
			}
			return format.print(std, list, shown.to(std))
		},
	}
	format.register(cmd)
	return cmd
}

// redacted is a URL without its password.
func redacted(server string) string {
	u, err := url.Parse(server)
	if err != nil {
		return "?"
	}
	return u.Redacted()
}

func contextUseCommand(std streams) *cobra.Command {
	return &cobra.Command{
		Use:               "use NAME",
		Short:             "Make a context the current one",
		Example:           "  sluice context use prod",
		Args:              usage(cobra.ExactArgs(1)),
		ValidArgsFunction: completeContexts,
		RunE: func(cmd *cobra.Command, args []string) error {
			return changeContexts(cmd, std, args[0], func(f *credential.File) (string, error) {
				if _, err := f.Find(args[0]); err != nil {
					return "", notFoundError{err}
				}
				f.Current = args[0]
				return "is the current one", nil
			})
		},
	}
}

// changeContexts changes the file, and then prints the result, as change returns it, behind the name of the context.
func changeContexts(cmd *cobra.Command, std streams, name string, change func(*credential.File) (string, error)) error {
	var result string
	var absent notFoundError
	switch err := credential.UpdateContexts(cmd.Context(), contextsPath(), func(f *credential.File) (err error) {
		result, err = change(f)
		return err
	}); {
	case errors.As(err, &absent) || cmd.Context().Err() != nil:
		return err
	case err != nil:
		return usageError{errors.New(oneLine(err))}
	}
	_, err := fmt.Fprintf(std.out, "context %s %s\n", printable(name), result)
	return err
}

func contextSetCommand(std streams) *cobra.Command {
	var given credential.Context
	cmd := &cobra.Command{
		Use:   "set NAME [flags] [-- COMMAND [ARGUMENT...]]",
		Short: "Make a context, or change it",
		Long: "Make a context, or change what the flags name of one that exists; an empty value takes something away. What follows -- is a\n" +
			"program with its arguments that prints a token; it is run without a shell. The first context becomes the current one.",
		Example: "  sluice context set prod --server https://gateway.example.com --ca ca.pem --token-file token\n" +
			"  sluice context set prod -n web\n" +
			"  sluice context set prod -- vault read -field=token sluice/creds/me",
		Args: usage(func(cmd *cobra.Command, args []string) error {
			if n := cmd.ArgsLenAtDash(); n == 1 && len(args) > 1 || n < 0 && len(args) == 1 {
				return nil
			}
			return errors.New("one name is wanted, and after -- a program")
		}),
		ValidArgsFunction: completeContexts,
		RunE: func(cmd *cobra.Command, args []string) error {
			name, command := args[0], args[1:]
			if err := credential.CheckName(name); err != nil {
				return usageError{err}
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
	registerAccess(cmd, &given.Access)
	return cmd
}

// setContext changes what the flags name. Paths become absolute, as commands run in any folder.
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
		if *to[flag] = *path; *path != "" {
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

func contextDeleteCommand(std streams) *cobra.Command {
	return &cobra.Command{
		Use:               "delete NAME",
		Short:             "Delete a context, and its login",
		Example:           "  sluice context delete prod",
		Args:              usage(cobra.ExactArgs(1)),
		ValidArgsFunction: completeContexts,
		RunE: func(cmd *cobra.Command, args []string) error {
			return changeContexts(cmd, std, args[0], func(f *credential.File) (string, error) {
				if _, err := f.Find(args[0]); err != nil {
					return "", notFoundError{err}
				}
				if err := credential.KeepLogin(cmd.Context(), credential.LoginsPath(contextsPath()), args[0], nil); err != nil {
					return "", err
				}
				delete(f.Contexts, args[0])
				if f.Current == args[0] {
					f.Current = ""
				}
				return "is deleted", nil
			})
		},
	}
}
