package read

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/command"
	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/cmd/sluice/remote"
)

// completeReading adds completion to the flags of get.
func completeReading(cmd *cobra.Command) {
	command.CompleteFlag(cmd, "filter", remote.WithoutSpace(remote.CompleteBy(remote.Completer.Filters)))
	command.CompleteFlag(cmd, "output", func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		var out []string
		more := true // all words that match can be continued
		for _, f := range output.Formats() {
			name, _, argument := strings.Cut(f, "=")
			if argument {
				name += "="
			}
			if strings.HasPrefix(name, typed) {
				out, more = append(out, name), more && argument
			}
		}
		if more {
			return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	})
}
