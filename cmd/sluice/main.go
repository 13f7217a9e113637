// Command sluice is the gateway and its command line.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/config"
	"github.com/sluicegw/sluice/graph/client"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the second signal ends the program at once
	code := run(ctx, os.Args[1:], streams{in: os.Stdin, out: os.Stdout, err: os.Stderr})
	stop()
	os.Exit(code)
}

// streams are the standard streams of a command.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// Exit codes.
const (
	exitOK       = 0
	exitFail     = 1
	exitUsage    = 2
	exitNotFound = 3
	exitPartial  = 4
)

// usageError is a mistake in the command line, the environment or a file. It is also any failure of sluice diff, where
// exitFail means that something differs.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// notFoundError is about a resource that was named and does not exist.
type notFoundError struct{ error }

func (e notFoundError) Unwrap() error { return e.error }

// partialError means that all was changed that could be read, and that some resources could not be.
type partialError struct{ error }

func (e partialError) Unwrap() error { return e.error }

// errReported means that the user was told already.
var errReported = errors.New("reported")

// run executes one command line and returns its exit code.
func run(ctx context.Context, args []string, std streams) int {
	std = std.checked()
	code := execute(ctx, args, std)
	std.show("")
	return code
}

func execute(ctx context.Context, args []string, std streams) int {
	root := newRoot(std)
	root.SetArgs(args)
	root.SetOut(std.out)
	root.SetErr(std.err)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w; see %s --help", config.Refusal(err), cmd.CommandPath())}
	})
	cmd, err := root.ExecuteContextC(ctx)
	if lost := std.out.(*stream).failure(); lost != nil && !errors.Is(err, lost) {
		_, _ = fmt.Fprintf(std.err, "sluice: the output is incomplete: %s\n", printable(lost.Error()))
		if cmd.CommandPath() == "sluice diff" {
			return exitUsage // 1 would say that something differs
		}
		if err == nil {
			return exitFail
		}
	}
	if err == nil {
		return exitOK
	}
	if errors.Is(err, errReported) {
		return exitCode(err)
	}
	if ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.As(err, new(*client.UnansweredError))) {
		err = errors.New("interrupted")
	}
	code := exitCode(err)
	var many linesError
	if errors.As(err, &many) {
		for _, line := range many.lines {
			_, _ = fmt.Fprintln(std.err, printable(line))
		}
		return exitUsage
	}
	if errors.As(err, &client.Errors{}) {
		explain(std, "sluice", err)
		return code
	}
	_, _ = fmt.Fprintf(std.err, "sluice: %s\n", printable(strings.Join(strings.Fields(err.Error()), " ")))
	if cmd == root {
		return exitUsage
	}
	return code
}

// newRoot is the command line.
func newRoot(std streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "sluice",
		Short: "A GraphQL gateway over resource services",
		Long: "A GraphQL gateway over resource services, and its command line.\n\n" +
			"Exit codes: 0 done; 1 failed, or the answer is no; 2 the command line, the environment or a file is wrong;\n" +
			"3 a resource that was named does not exist, and nothing else went wrong;\n" +
			"4 resources that the gateway cannot read were left out of a change by labels, and nothing else went wrong.",
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       versionText(),
	}
	root.SetVersionTemplate(versionLine())
	root.AddCommand(
		serveCommand(std), applyCommand(std), createCommand(std), getCommand(std), editCommand(std),
		deleteCommand(std), watchCommand(std), describeCommand(std), revealCommand(std), explainCommand(std), kindsCommand(std), waitCommand(std), treeCommand(std),
		diffCommand(std), labelCommand(std), annotateCommand(std), patchCommand(std), finalizeCommand(std), controlCommand(std),
		catalogueCommand(std), contextCommand(std), loginCommand(std), logoutCommand(std), authCommand(std), tokenCommand(std), completionCommand(std), versionCommand(std),
	)
	completeAll(root)
	return root
}

// withCommands completes a command that does nothing without one of its subcommands.
func withCommands(cmd *cobra.Command, commands ...*cobra.Command) *cobra.Command {
	var names []string
	for _, c := range commands {
		names = append(names, c.Name())
	}
	last := len(names) - 1
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return usageError{fmt.Errorf("%s or %s is wanted; see %s --help", strings.Join(names[:last], ", "), names[last], cmd.CommandPath())}
	}
	cmd.AddCommand(commands...)
	return cmd
}

// exitCode returns the exit code for an error.
func exitCode(err error) int {
	var wrong usageError
	var absent notFoundError
	switch {
	case errors.As(err, &wrong):
		return exitUsage
	case errors.As(err, &absent):
		return exitNotFound
	case errors.As(err, new(partialError)):
		return exitPartial
	}
	return exitFail
}

// usage turns the error of a check of the arguments into a usage error.
func usage(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usageError{fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())}
		}
		return nil
	}
}
