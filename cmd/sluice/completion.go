package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/command"
	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
)

func completionCommand(std terminal.Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "Print what makes a shell complete this command line",
		Long: "Print what makes a shell complete this command line: commands, flags, kinds, names, namespaces, labels and formats.\n" +
			"The shell asks the gateway that the command line would ask; it waits for at most two seconds, and completes\n" +
			"nothing if nobody answers.",
		Example: "  source <(sluice completion bash)\n  sluice completion zsh > \"${fpath[1]}/_sluice\"\n" +
			"  sluice completion fish > ~/.config/fish/completions/sluice.fish\n" +
			"  sluice completion powershell | Out-String | Invoke-Expression",
		Args:                  command.Args(1, 1),
		ValidArgs:             []string{"bash", "zsh", "fish", "powershell"},
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch args[0] {
			case "bash":
				return cmd.Root().GenBashCompletionV2(std.Out, true)
			case "zsh":
				return cmd.Root().GenZshCompletion(std.Out)
			case "powershell":
				return cmd.Root().GenPowerShellCompletionWithDesc(std.Out)
			case "fish":
				return cmd.Root().GenFishCompletion(std.Out, true)
			}
			return exit.Usage(fmt.Errorf("%q: accepted are %s", args[0], strings.Join(cmd.ValidArgs, ", ")))
		},
	}
}
