package write

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/command"
	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/cmd/sluice/remote"
	"github.com/sluicegw/sluice/cmd/sluice/resource"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
	"github.com/sluicegw/sluice/graph/client"
)

func ControlCommand(std terminal.Streams) *cobra.Command {
	var r remote.Flags
	var off bool
	var dry command.DryRun
	cmd := &cobra.Command{
		Use:   "control KIND...",
		Short: "Let a controller say when resources of a kind are ready, or take that from it",
		Long: "Give kinds to a controller: from then on their resources become ready only by the status that it writes, in all\n" +
			"gateways of the store. With --off they are ready again when what they refer to is. `sluice api-resources` shows\n" +
			"which kinds a controller has.",
		Example: "  sluice control network\n  sluice control networks,subnets\n  sluice control network --off",
		Args:    command.Args(1, command.Unlimited),
		ValidArgsFunction: remote.CompleteBy(func(c remote.Completer, _ context.Context, args []string, _ string) []string {
			return remote.KindNames(
				slices.DeleteFunc(c.Kinds, func(k client.Kind) bool {
					return !k.Offers("CONTROL") || slices.ContainsFunc(args, k.Is)
				}),
				false,
			)
		}),
		RunE: remote.With(r.Writer, func(cmd *cobra.Command, c *client.Client, args []string) error {
			if dry {
				return exit.Usage(errors.New("dry-run: whether a controller has a kind can only be changed, not tried; `sluice api-resources` shows how it is"))
			}
			return control(cmd.Context(), std, c, args, !off)
		}),
	}
	r.Register(cmd)
	dry.Register(cmd) // so that a dry run, perhaps asked for by the environment, is refused and not ignored
	_ = cmd.Flags().MarkHidden("dry-run")
	cmd.Flags().BoolVar(&off, "off", false, "take the kinds from the controller")
	return cmd
}

// control gives kinds to a controller, or takes them back. It looks up all kinds before it changes the first one.
func control(ctx context.Context, std terminal.Streams, c *client.Client, words []string, controlled bool) error {
	if i := slices.IndexFunc(words, func(word string) bool { return strings.Contains(word, "/") }); i >= 0 {
		return exit.Usage(fmt.Errorf("%q: kinds are given to a controller, not single resources", words[i]))
	}
	targets, err := resource.ReadTargets(ctx, c, []string{strings.Join(words, ",")})
	if err != nil {
		return err
	}
	targets = slices.DeleteFunc(targets, func(t resource.Target) bool { return t.OfAll && !t.Kind.Offers("CONTROL") })
	var failed exit.Status
	exit.Each(ctx, std, &failed, targets, func(t resource.Target) error {
		err := writeError(ctx, setControlled(ctx, std, c, t.Kind, controlled), false)
		if err != nil {
			exit.Explain(std, t.Kind.Name, err)
		}
		return err
	})
	return failed.Err()
}

func setControlled(ctx context.Context, std terminal.Streams, c *client.Client, k client.Kind, controlled bool) error {
	now, err := c.ControlKind(ctx, k.Name, controlled)
	if err != nil {
		return err
	}
	state := "controlled"
	if !now {
		state = "not controlled"
	}
	// An error of the output is reported once, at the end of the command.
	_, _ = fmt.Fprintf(std.Out, "%s is %s\n", output.Printable(k.Name), state)
	return nil
}
