package command

import (
	"errors"
	"strconv"

	"github.com/spf13/cobra"
)

// DryRun is the value of the flag --dry-run. A dry run is always made by the gateway.
type DryRun bool

func (d *DryRun) Register(cmd *cobra.Command) {
	cmd.Flags().Var(
		d,
		"dry-run",
		"have the gateway check everything and say what would happen, and write nothing (--dry-run=server is the same)",
	)
	cmd.Flags().Lookup("dry-run").NoOptDefVal = "server"
	CompleteFlag(cmd, "dry-run", cobra.FixedCompletions([]string{"server", "none"}, cobra.ShellCompDirectiveNoFileComp))
}

// Set parses server, none, or a Boolean.
func (d *DryRun) Set(text string) error {
	switch text {
	case "server":
		*d = true
		return nil
	case "none":
		*d = false
		return nil
	case "client":
		return errors.New("only the gateway knows the kinds and what is stored: use --dry-run=server, which writes nothing either")
	}
	yes, err := strconv.ParseBool(text)
	if err != nil {
		return errors.New("server and none are accepted")
	}
	*d = DryRun(yes)
	return nil
}

// String returns the value in the form that Set accepts.
func (d *DryRun) String() string {
	if *d {
		return "server"
	}
	return "none"
}

// Type returns the type of the value for the help.
func (d *DryRun) Type() string { return "string" }

// Mark returns the text to append to each result of a dry run.
func (d DryRun) Mark() string {
	if d {
		return " (dry run)"
	}
	return ""
}
