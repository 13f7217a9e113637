package command

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sluicegw/sluice/cmd/sluice/config"
	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/output"
)

// LoadSettings sets the flags that are not on the command line: from the environment, or else from the configuration
// file.
func LoadSettings(cmd *cobra.Command) error { return loadFlags(cmd, cmd.Flags()) }

// ReadSettings is like LoadSettings, but its error joins all problems. One of them may be a [*config.FileError].
func ReadSettings(cmd *cobra.Command) error { return readFlags(cmd, cmd.Flags()) }

// LoadOnly is like LoadSettings for the flags with these names. Flags that the command does not have are ignored.
func LoadOnly(cmd *cobra.Command, names ...string) error {
	flags := pflag.NewFlagSet(cmd.Name(), pflag.ContinueOnError)
	for _, name := range names {
		if f := cmd.Flags().Lookup(name); f != nil {
			flags.AddFlag(f)
		}
	}
	return loadFlags(cmd, flags)
}

// loadFlags is like LoadSettings for some flags of a command.
func loadFlags(cmd *cobra.Command, flags *pflag.FlagSet) error {
	err := readFlags(cmd, flags)
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case err != nil:
		return exit.Usage(errors.New(exit.OneLine(err)))
	}
	return nil
}

// readFlags is like ReadSettings for some flags of a command.
func readFlags(cmd *cobra.Command, flags *pflag.FlagSet) error {
	own, others := map[string]bool{}, map[string]bool{}
	variables(own, cmd.Name(), flags)
	for _, c := range cmd.Root().Commands() {
		variables(others, c.Name(), c.Flags())
	}
	known := config.Variables{Own: slices.Sorted(maps.Keys(own)), Others: slices.Sorted(maps.Keys(others))}
	return config.Load(cmd.Context(), flags, known, func(text string) {
		_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "sluice: warning: %s\n", output.Printable(text))
	})
}

// variables adds the names of the environment variables for these flags of a command.
func variables(to map[string]bool, command string, flags *pflag.FlagSet) {
	flags.VisitAll(func(f *pflag.Flag) {
		if config.FromEnvironment(f) {
			to[config.EnvName(f.Name)] = true
		}
	})
	if flags.Lookup("context") != nil {
		to[config.ContextsVariable], to[config.TokenVariable] = true, true
	}
	switch command {
	case "serve", "export", "copy":
		to[config.KeysVariable] = true
	case "edit":
		to[config.EditorVariable] = true
	}
}
