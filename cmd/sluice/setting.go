package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sluicegw/sluice/cmd/sluice/config"
)

// editorVariable names the editor of edit; it is no flag.
const editorVariable = config.EnvPrefix + "EDITOR"

// loadSettings fills the flags that the command line left out from the
// environment, then from the configuration file.
func loadSettings(cmd *cobra.Command) error { return loadFlags(cmd, cmd.Flags()) }

// loadOnly is loadSettings for the named flags, as far as a command has them.
func loadOnly(cmd *cobra.Command, names ...string) error {
	flags := pflag.NewFlagSet(cmd.Name(), pflag.ContinueOnError)
	for _, name := range names {
		if f := cmd.Flags().Lookup(name); f != nil {
			flags.AddFlag(f)
		}
	}
	return loadFlags(cmd, flags)
}

// loadFlags is loadSettings for some of the flags of a command.
func loadFlags(cmd *cobra.Command, flags *pflag.FlagSet) error {
	own, others := map[string]bool{}, map[string]bool{}
	variables(own, cmd.Name(), flags)
	for _, c := range cmd.Root().Commands() {
		variables(others, c.Name(), c.Flags())
	}
	known := config.Variables{Own: slices.Sorted(maps.Keys(own)), Others: slices.Sorted(maps.Keys(others))}
	err := config.Load(cmd.Context(), flags, known, func(text string) {
		_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "sluice: warning: %s\n", printable(text))
	})
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case err != nil:
		return usageError{errors.New(oneLine(err))}
	}
	return nil
}

// variables adds the names of the environment variables of a command with these flags.
func variables(to map[string]bool, command string, flags *pflag.FlagSet) {
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" {
			to[config.EnvName(f.Name)] = true
		}
	})
	if flags.Lookup("context") != nil {
		to[contextsVariable], to[tokenVariable] = true, true
	}
	switch command {
	case "serve":
		to[keysVariable] = true
	case "edit":
		to[editorVariable] = true
	}
}
