package main

import (
	"errors"
	"strconv"

	"github.com/spf13/cobra"
)

// dryRun is the value of --dry-run. Only the gateway can judge, so there is no dry run on the client.
type dryRun bool

func (d *dryRun) register(cmd *cobra.Command) {
	cmd.Flags().Var(d, "dry-run", "have the gateway check everything and say what would happen, and write nothing (--dry-run=server is the same)")
	cmd.Flags().Lookup("dry-run").NoOptDefVal = "server"
	completeFlag(cmd, "dry-run", cobra.FixedCompletions([]string{"server", "none"}, cobra.ShellCompDirectiveNoFileComp))
}

// Set reads server, none, or a bool.
func (d *dryRun) Set(text string) error {
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
	*d = dryRun(yes)
	return nil
}

// String returns the value as Set reads it.
func (d *dryRun) String() string {
	if *d {
		return "server"
	}
	return "none"
}

// Type names the values in the help.
func (d *dryRun) Type() string { return "string" }

// mark returns the text behind each result of a dry run.
func (d dryRun) mark() string {
	if d {
		return " (dry run)"
	}
	return ""
}
