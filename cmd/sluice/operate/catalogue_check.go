package operate

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/cmd/sluice/command"
	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/cmd/sluice/sdl"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
	"github.com/sluicegw/sluice/graph/release"
)

func catalogueCheckCommand(std terminal.Streams) *cobra.Command {
	return &cobra.Command{
		Use:     "check [DIR]",
		Short:   "Say whether a catalogue can be served, and what is wrong with it by file and line",
		Example: "  sluice catalogue check ./kinds",
		Args:    command.Args(0, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			c, err := sdl.Read(directory(args))
			if err == nil {
				err = c.CheckReleased()
			}
			if err != nil {
				return err
			}
			own := len(slices.DeleteFunc(slices.Clone(c.Kinds), func(k descriptor.Kind) bool {
				return k.Name == access.RoleKind || k.Name == access.BindingKind
			}))
			_, _ = fmt.Fprintf(std.Out, "%s, %d types, catalogue %s, files %s\n",
				output.Plural(own, "kind"), len(c.API.Types), c.Outline.Hash(), c.Files)
			printDropped(std, c.Dropped())
			return nil
		},
	}
}

// printDropped prints the versions that are not served any more because a newer major was released.
func printDropped(std terminal.Streams, dropped []*release.Version) {
	for _, v := range dropped {
		_, _ = fmt.Fprintf(std.Out, "%s is not served any more: %s\n", v, output.Printable(v.Why))
	}
}
