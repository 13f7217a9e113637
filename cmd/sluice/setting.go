package main

import (
	"errors"
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

// loadFlags is loadSettings for some of the flags of a command.
func loadFlags(cmd *cobra.Command, flags *pflag.FlagSet) error {
	known := map[string]bool{editorVariable: true, keysVariable: true} // commands share names of flags
	for _, c := range cmd.Root().Commands() {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Name != "help" {
				known[config.EnvName(f.Name)] = true
			}
		})
	}
	if err := config.Load(flags, slices.Sorted(maps.Keys(known))); err != nil {
		return usageError{errors.New(oneLine(err))}
	}
	return nil
}
