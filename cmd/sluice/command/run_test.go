package command_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/command"
	"github.com/sluicegw/sluice/cmd/sluice/commandtest"
	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
)

// newRoot returns a root command whose subcommands end in several ways.
func newRoot(std terminal.Streams) *cobra.Command {
	ends := func(name string, run func(ctx context.Context) error) *cobra.Command {
		return &cobra.Command{
			Use: name, Args: command.Args(0, 0),
			RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd.Context()) },
		}
	}
	pair := ends("pair", nil)
	pair.Use = "pair ONE TWO"
	pair.Args = command.Args(2, 2)
	pair.Flags().String("side", "", "")
	return commandtest.NewRoot(
		pair,
		ends("well", func(context.Context) error {
			_, err := fmt.Fprintln(std.Out, "done")
			return err
		}),
		ends("badly", func(context.Context) error { return errors.New("a\nbad\x1bend") }),
		ends("reported", func(context.Context) error { return exit.ErrReported }),
		ends("absent", func(context.Context) error { return exit.NotFound(errors.New("no such thing")) }),
		ends("never", func(ctx context.Context) error { return ctx.Err() }),
		command.WithSubcommands(&cobra.Command{Use: "parts"}, ends("one", nil), ends("two", nil)),
		command.WithSubcommands(&cobra.Command{Use: "part"}, ends("one", nil)),
	)
}

func TestRun_ExplainsAnErrorInOneLine(t *testing.T) {
	for args, want := range map[string]struct {
		code        int
		out, errOut string
	}{
		"well":     {exit.CodeOK, "done\n", ""},
		"badly":    {exit.CodeFail, "", "sluice: a bad"},
		"reported": {exit.CodeFail, "", ""},
		"absent":   {exit.CodeNotFound, "", "sluice: no such thing\n"},
		"well x":   {exit.CodeUsage, "", "sluice: \"x\": sluice well takes no arguments; see sluice well --help\n"},
		"well -z":  {exit.CodeUsage, "", "see sluice well --help\n"},
		"pair a":   {exit.CodeUsage, "", "sluice: arguments are missing: sluice pair ONE TWO is accepted; see sluice pair --help\n"},
		"pair a b c": {
			exit.CodeUsage, "", "sluice: \"c\" is too much: sluice pair ONE TWO is accepted; see sluice pair --help\n",
		},
		"pair a b --sied x": {
			exit.CodeUsage, "", "sluice: unknown flag: --sied; did you mean --side?; see sluice pair --help\n",
		},
		"parts":   {exit.CodeUsage, "", "sluice: one or two is wanted; see sluice parts --help\n"},
		"parts x": {exit.CodeUsage, "", "sluice: \"x\": one or two is wanted; see sluice parts --help\n"},
		"part x":  {exit.CodeUsage, "", "sluice: \"x\": one is wanted; see sluice part --help\n"},
		"unknown": {exit.CodeUsage, "", "sluice: unknown command \"unknown\" for \"sluice\"; see sluice --help\n"},
		"wel": {
			exit.CodeUsage, "", "sluice: unknown command \"wel\" for \"sluice\"; did you mean well?; see sluice --help\n",
		},
	} {
		out, errOut, code := commandtest.Run(t, newRoot, strings.Fields(args)...)
		if code != want.code || out != want.out || !strings.Contains(errOut, want.errOut) || want.errOut == "" && errOut != "" ||
			strings.Count(errOut, "\n") > 1 || strings.Contains(errOut, "\x1b") {
			t.Errorf("%s: exit %d %q %q, want %+v", args, code, out, errOut, want)
		}
	}
}

func TestRun_SaysThatItWasInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var errs strings.Builder
	code := command.Run(ctx, newRoot, []string{"never"}, terminal.Streams{In: strings.NewReader(""), Out: &strings.Builder{}, Err: &errs})
	if code != exit.CodeFail || errs.String() != "sluice: interrupted\n" {
		t.Errorf("exit %d %q", code, errs.String())
	}
}

func TestRun_FailsIfTheOutputIsLost(t *testing.T) {
	var errs strings.Builder
	code := command.Run(t.Context(), newRoot, []string{"well"}, terminal.Streams{In: strings.NewReader(""), Out: commandtest.FullDisk{}, Err: &errs})
	if code != exit.CodeFail || strings.Count(errs.String(), "no space left") != 1 {
		t.Errorf("exit %d %q", code, errs.String())
	}
}
