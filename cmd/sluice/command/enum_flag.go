package command

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// enumFlag is a flag that accepts only certain words.
type enumFlag struct {
	value    *string
	accepted []string
}

// AddEnumFlag adds a flag that accepts only certain words, with completion. The present value of to is the default.
func AddEnumFlag(cmd *cobra.Command, to *string, flag pflag.Flag, accepted ...string) {
	flag.Value, flag.DefValue = enumFlag{to, accepted}, *to
	cmd.Flags().AddFlag(&flag)
	CompleteFlag(cmd, flag.Name, cobra.FixedCompletions(accepted, cobra.ShellCompDirectiveNoFileComp))
}

// Set implements [pflag.Value].
func (c enumFlag) Set(text string) error {
	if !slices.Contains(c.accepted, text) {
		return fmt.Errorf("accepted are %s", strings.Join(c.accepted, ", "))
	}
	*c.value = text
	return nil
}

// String implements [pflag.Value].
func (c enumFlag) String() string {
	if c.value == nil {
		return "" // pflag calls String on a zero value
	}
	return *c.value
}

// Type returns the type of the value for the help.
func (c enumFlag) Type() string { return "string" }
