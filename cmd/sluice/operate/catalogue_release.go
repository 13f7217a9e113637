package operate

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/backend/catalogue"
	"github.com/sluicegw/sluice/cmd/sluice/command"
	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/cmd/sluice/sdl"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
	"github.com/sluicegw/sluice/graph/release"
)

func catalogueReleaseCommand(std terminal.Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "release VERSION [DIR]",
		Short: "Release a version of a catalogue's API, which stays as it is from now on",
		Long: "Release a version of the API of the catalogue in a folder, the current one by default.\n\n" +
			"The version is written to versions/v1.0 in the folder: the catalogue's files as they are, and the API\n" +
			"that is derived from them. From then on the catalogue is refused if it would break a client of the\n" +
			"version. What clients may notice, compared with the version before, is printed. A version that is a\n" +
			"candidate by versions/versions.yaml is written again, and released.",
		Example: "  sluice catalogue release 1.0 ./kinds",
		Args:    command.Args(1, 2),
		RunE: func(_ *cobra.Command, args []string) error {
			number, err := release.ParseVersion(args[0])
			if err != nil {
				return exit.Usage(err)
			}
			dir := directory(args[1:])
			if dir == "" {
				dir = "."
			}
			texts, err := release.ReadDir(dir)
			if err != nil {
				return exit.Usage(err)
			}
			c, err := sdl.FromTexts(texts, dir)
			if err != nil {
				return err
			}
			changes, err := c.CheckRelease(number)
			if err != nil {
				return err
			}
			sources, _ := release.Split(texts)
			if c.IsCandidate(number) {
				err = release.Rewrite(dir, number, sources, c.API)
				if err == nil {
					err = release.Freeze(dir, number)
				}
			} else {
				err = release.Write(dir, number, sources, c.API)
			}
			if err != nil {
				return exit.Usage(err)
			}
			for _, change := range changes {
				if change.Severity >= catalogue.Dangerous {
					_, _ = fmt.Fprintf(std.Out, "clients of the version before may notice: %s\n",
						output.Printable(change.String()))
				}
			}
			if texts, err = release.ReadDir(dir); err != nil {
				return exit.Usage(err)
			}
			if c, err = sdl.FromTexts(texts, dir); err != nil {
				return err
			}
			printDropped(std, c.Dropped())
			_, err = fmt.Fprintf(std.Out, "released %s: keep its folder %s with the catalogue, as it is\n"+
				"a running gateway serves %s once it has read the catalogue: sluice catalogue apply %s; or, if this is its "+
				"own folder, sluice catalogue reload or SIGHUP\n",
				number, output.Printable(release.Dir(dir, number)), number, output.Printable(dir))
			return err
		},
	}
}
