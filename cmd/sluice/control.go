package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/graph/client"
)

func controlCommand(std streams) *cobra.Command {
	var r remote
	var off bool
	var dry dryRun
	cmd := &cobra.Command{
		Use:   "control KIND...",
		Short: "Let a controller say when resources of a kind are ready, or take that from it",
		Long: "Give kinds to a controller: from then on their resources become ready only by the status that it writes, in all\n" +
			"gateways of the store. With --off they are ready again when what they refer to is. `sluice api-resources` shows\n" +
			"which kinds a controller has.",
		Example: "  sluice control network\n  sluice control networks,subnets\n  sluice control network --off",
		Args:    usage(cobra.MinimumNArgs(1)),
		ValidArgsFunction: completeBy(func(c completer, _ context.Context, args []string, _ string) []string {
			return kindNames(slices.DeleteFunc(c.kinds, func(k client.Kind) bool { return !k.Offers("CONTROL") || slices.ContainsFunc(args, k.Is) }), false)
		}),
		RunE: with(r.writer, func(cmd *cobra.Command, c *client.Client, args []string) error {
			if dry {
				return usageError{errors.New("dry-run: whether a controller has a kind can only be changed, not tried; `sluice api-resources` shows how it is")}
			}
			return control(cmd.Context(), std, c, args, !off)
		}),
	}
	r.register(cmd)
	dry.register(cmd) // so that a dry run, perhaps asked for by the environment, is refused and not ignored
	_ = cmd.Flags().MarkHidden("dry-run")
	cmd.Flags().BoolVar(&off, "off", false, "take the kinds from the controller")
	return cmd
}

// control gives kinds to a controller, or takes them back. All are known before the
// first is changed.
func control(ctx context.Context, std streams, c *client.Client, words []string, controlled bool) error {
	if i := slices.IndexFunc(words, func(word string) bool { return strings.Contains(word, "/") }); i >= 0 {
		return usageError{fmt.Errorf("%q: kinds are given to a controller, not single resources", words[i])}
	}
	targets, err := readTargets(ctx, c, []string{strings.Join(words, ",")})
	if err != nil {
		return err
	}
	targets = slices.DeleteFunc(targets, func(t target) bool { return t.ofAll && !t.kind.Offers("CONTROL") })
	var failed tally
	each(ctx, std, &failed, targets, func(t target) error {
		err := writeError(ctx, setControlled(ctx, std, c, t.kind, controlled), false)
		if err != nil {
			explain(std, t.kind.Name, err)
		}
		return err
	})
	return failed.err()
}

func setControlled(ctx context.Context, std streams, c *client.Client, k client.Kind, controlled bool) error {
	now, err := c.ControlKind(ctx, k.Name, controlled)
	if err != nil {
		return err
	}
	state := "controlled"
	if !now {
		state = "not controlled"
	}
	_, err = fmt.Fprintf(std.out, "%s is %s\n", printable(k.Name), state)
	return err
}
