// Package command has what the commands share: running a command line, checks of arguments, common flags, and reading
// flags from the environment and the configuration file.
package command

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/config"
	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
	"github.com/sluicegw/sluice/graph/client"
)

// Run executes a command line and returns its exit code. newRoot returns the root command.
func Run(ctx context.Context, newRoot func(terminal.Streams) *cobra.Command, args []string, std terminal.Streams) int {
	std = std.Checked()
	code := execute(ctx, newRoot(std), args, std)
	std.Show("")
	return code
}

func execute(ctx context.Context, root *cobra.Command, args []string, std terminal.Streams) int {
	root.SetArgs(args)
	root.SetOut(std.Out)
	root.SetErr(std.Err)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return exit.Usage(fmt.Errorf("%w; see %s --help", config.Refusal(cmd.Flags(), err), cmd.CommandPath()))
	})
	cmd, err := root.ExecuteContextC(ctx)
	if lost := std.OutputError(); lost != nil && !errors.Is(err, lost) {
		_, _ = fmt.Fprintf(std.Err, "sluice: the output is incomplete: %s\n", output.Printable(lost.Error()))
		if cmd.CommandPath() == "sluice diff" {
			return exit.CodeUsage // CodeFail would mean that there are differences
		}
		if err == nil {
			return exit.CodeFail
		}
	}
	if err == nil {
		return exit.CodeOK
	}
	if errors.Is(err, exit.ErrReported) {
		return exit.CodeOf(err)
	}
	if ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.As(err, new(*client.UnansweredError))) {
		err = errors.New("interrupted")
	}
	code := exit.CodeOf(err)
	var many exit.LinesError
	if errors.As(err, &many) {
		for _, line := range many.Lines {
			_, _ = fmt.Fprintln(std.Err, output.Printable(line))
		}
		return exit.CodeUsage
	}
	if errors.As(err, &client.Errors{}) {
		exit.Explain(std, "sluice", err)
		return code
	}
	message := err.Error()
	if cmd == root {
		message = rootError(message)
		code = exit.CodeUsage
	}
	_, _ = fmt.Fprintf(std.Err, "sluice: %s\n", output.Printable(strings.Join(strings.Fields(message), " ")))
	return code
}

// rootError returns cobra's error about an unknown command in one line, and says where the commands are listed.
func rootError(message string) string {
	const help = "; see sluice --help"
	if strings.HasSuffix(message, help) {
		return message
	}
	message, similar, _ := strings.Cut(message, "Did you mean this?")
	if names := strings.Fields(similar); len(names) > 0 {
		message = strings.TrimSpace(message) + "; did you mean " + strings.Join(names, " or ") + "?"
	}
	return message + help
}
