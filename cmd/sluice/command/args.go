package command

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/exit"
)

// Unlimited is the maximum of [Args] for any number of arguments.
const Unlimited = -1

// Args returns a check of the number of arguments. Its errors name the arguments that are accepted.
func Args(least, most int) cobra.PositionalArgs {
	return CheckArgs(func(cmd *cobra.Command, args []string) error {
		_, accepted, _ := strings.Cut(cmd.Use, " ")
		switch {
		case len(args) < least:
			return fmt.Errorf("arguments are missing: %s %s is accepted", cmd.CommandPath(), accepted)
		case most == Unlimited || len(args) <= most:
			return nil
		case most == 0:
			return fmt.Errorf("%q: %s takes no arguments", args[0], cmd.CommandPath())
		}
		return fmt.Errorf("%q is too much: %s %s is accepted", args[most], cmd.CommandPath(), accepted)
	})
}

// CheckArgs returns a check of arguments whose errors are usage errors.
func CheckArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return exit.Usage(fmt.Errorf("%w; see %s --help", err, cmd.CommandPath()))
		}
		return nil
	}
}
