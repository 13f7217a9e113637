package operate

import (
	"fmt"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/sluicegw/sluice/cmd/sluice/command"
	"github.com/sluicegw/sluice/cmd/sluice/gateway"
	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
)

func StateCommand(std terminal.Streams) *cobra.Command {
	return command.WithSubcommands(
		&cobra.Command{
			Use:     "state",
			Short:   "Move everything that is stored to another store",
			Long:    "Move everything that is stored to another store, while no gateway serves either of them.\n\nsluice export writes it to a file.",
			Example: "  sluice state copy ./sluice-data redis://127.0.0.1:6379",
		},
		stateCopyCommand(std),
	)
}

func stateCopyCommand(std terminal.Streams) *cobra.Command {
	var store offlineStore
	cmd := &cobra.Command{
		Use:   "copy FROM TO",
		Short: "Fill an empty store with everything that another one has",
		Long: "Fill an empty store with everything that another one has: what `sluice export` and `sluice serve --bootstrap` do, in one\n" +
			"command. Stop the gateways of both stores first. FROM and TO are folders of embedded stores, or URLs of Redis; the\n" +
			"flags about Redis are for both. What is copied goes through a temporary file. A copy to Redis that was interrupted goes\n" +
			"on when it is started again, if nobody has written to FROM since; no gateway serves the target until then.",
		Example: "  sluice state copy ./sluice-data redis://127.0.0.1:6379\n  sluice state copy redis://127.0.0.1:6379 ./sluice-data",
		Args:    command.Args(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := store.load(cmd); err != nil {
				return err
			}
			defer std.Show("")
			copied, err := gateway.StateCopy{
				From: store.at(args[0]), To: store.at(args[1]), Keys: store.keys,
				Progress: std.Progress,
			}.Run(cmd.Context(), zap.NewNop())
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(std.Out, "%s has %s of %s now\n",
				output.Printable(args[1]), output.Plural(copied.Resources, "resource"), output.Printable(args[0]))
			if err == nil && copied.Unreadable > 0 {
				err = fmt.Errorf("%s of %s could not be read and were not copied; sluice check names them",
					output.Plural(copied.Unreadable, "record"), output.Printable(args[0]))
			}
			return err
		},
	}
	store.register(cmd)
	return cmd
}
