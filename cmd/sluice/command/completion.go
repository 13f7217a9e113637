package command

import (
	"github.com/spf13/cobra"
)

type Completion = func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective)

// CompleteFlag completes the values of a flag.
func CompleteFlag(cmd *cobra.Command, flag string, f Completion) {
	if err := cmd.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic(err) // the flag is registered by the caller
	}
}
