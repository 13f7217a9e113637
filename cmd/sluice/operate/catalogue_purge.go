package operate

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/command"
	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
)

func cataloguePurgeCommand(std terminal.Streams) *cobra.Command {
	var r gatewayRequest
	cmd := &cobra.Command{
		Use:   "purge KIND | KIND.PATH",
		Short: "Remove what is stored and no catalogue names: a kind's resources, or a field's values",
		Long: "Remove what is stored of a kind, or of a field, that the catalogue does not have any more.\n\n" +
			"A running gateway removes the resources of the kind, or the values at a path like spec.email, in the names of the\n" +
			"store. It refuses what its catalogue names. A resource stays while others rely on it or finalizers hold it, as at any\n" +
			"delete; the exit code is then 1, as it is if nothing of that name is stored. Each removal is a line of the audit log.",
		Example: "  sluice catalogue purge Terminal --dry-run\n  sluice catalogue purge Team.spec.email --data ./sluice-data",
		Args:    command.Args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkPurge(args[0]); err != nil {
				return exit.Usage(err)
			}
			r.req.Purge = args[0]
			answer, err := r.send(cmd)
			if err != nil {
				return err
			}
			if answer.Purged == nil {
				return errors.New("the gateway does not know purge; it is of an older release")
			}
			if answer.Purged.Removed+answer.Purged.Kept == 0 {
				return nothingStored(args[0])
			}
			for _, why := range answer.Purged.Why {
				_, _ = fmt.Fprintln(std.Err, output.Printable(why))
			}
			done := "purged"
			if r.req.DryRun {
				done = "would be purged"
			}
			_, err = fmt.Fprintf(std.Out, "%s: %s %s, %d kept\n",
				output.Printable(args[0]), output.Plural(answer.Purged.Removed, "resource"), done, answer.Purged.Kept)
			if err == nil && answer.Purged.Kept > 0 {
				err = exit.ErrReported
			}
			return err
		},
	}
	r.registerSocket(cmd)
	r.registerDryRun(cmd)
	r.registerNetwork(cmd)
	return cmd
}

// nothingStored returns the error of a purge that has found nothing, because the data was purged before or the name is
// wrong.
func nothingStored(what string) error {
	if strings.Contains(what, ".") {
		return fmt.Errorf("no resource has a value at %s", what)
	}
	return fmt.Errorf("nothing is stored of a kind %s", what)
}

// checkPurge returns an error if an argument is neither KIND nor KIND.PATH. The names of kinds begin with a capital
// letter.
func checkPurge(what string) error {
	kind, path, dotted := strings.Cut(what, ".")
	if kind == "" || kind[0] < 'A' || kind[0] > 'Z' || dotted && path == "" {
		return fmt.Errorf("%q: KIND or KIND.PATH is accepted, with the kind as catalogues name it, "+
			"like Team or Team.spec.email", what)
	}
	return nil
}
