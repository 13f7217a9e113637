package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/config"
	"github.com/sluicegw/sluice/cmd/sluice/reload"
	"github.com/sluicegw/sluice/graph/client"
	"github.com/sluicegw/sluice/graph/kinds"
)

// running holds the flags of commands that give a catalogue to a running gateway: over its admin socket, or over the
// network if the command line names a server or a context.
type running struct {
	socket, data string
	remote       remote
	req          reload.Request
}

func (r *running) register(cmd *cobra.Command) {
	r.registerSocket(cmd)
	cmd.Flags().BoolVar(&r.req.AllowBreaking, "allow-breaking", false, "accept that the catalogue breaks what is stored; only this time")
	r.registerDryRun(cmd)
	r.registerNetwork(cmd)
}

func (r *running) registerSocket(cmd *cobra.Command) {
	cmd.Flags().StringVar(&r.socket, "admin-socket", "", "admin socket of the gateway; by default that in the folder of --data")
	cmd.Flags().StringVar(&r.data, "data", config.NewGateway().Store.Data, "folder of the gateway's embedded store")
}

func (r *running) registerDryRun(cmd *cobra.Command) {
	cmd.Flags().Var((*dryRun)(&r.req.DryRun), "dry-run", "say what would change, and change nothing")
	cmd.Flags().Lookup("dry-run").NoOptDefVal = "server"
}

// named reports whether the command line names a running gateway, on the network or by its socket, and refuses flags
// that then have no effect.
func (r *running) named(cmd *cobra.Command) (bool, error) {
	network, err := r.overNetwork(cmd)
	if network || err != nil {
		return network, err
	}
	socket := config.Named(cmd.Flags(), "data") || config.Named(cmd.Flags(), "admin-socket")
	if socket && config.Named(cmd.Flags(), "from") {
		return true, usageError{errors.New("from: it has no effect with --data or --admin-socket")}
	}
	return socket, nil
}

func (r *running) registerNetwork(cmd *cobra.Command) {
	cmd.Flags().StringVar(&r.remote.server, "server", "", "URL of the gateway, to ask it over the network; that needs the verb CATALOGUE")
	cmd.Flags().StringVar(&r.remote.context, "context", "", "context that names the gateway to ask over the network, see sluice context")
	registerAccess(cmd, &r.remote.access)
}

// overNetwork reports whether the command line names a gateway on the network, and refuses flags that then have no effect.
func (r *running) overNetwork(cmd *cobra.Command) (bool, error) {
	flags := cmd.Flags()
	network := config.Named(flags, "server") || config.Named(flags, "context")
	excluded, why := accessFlags, "without --server or --context"
	if network {
		excluded, why = []string{"admin-socket", "data", "from"}, "with --server or --context"
	}
	for _, name := range excluded {
		if config.Named(flags, name) {
			return network, usageError{fmt.Errorf("%s: it has no effect %s", name, why)}
		}
	}
	return network, nil
}

// client makes the client of the gateway. The environment may name the gateway and ask for a dry run, but it cannot
// accept breaking changes: only the command line can.
func (r *running) client(cmd *cobra.Command) (*client.Client, error) {
	network, err := r.overNetwork(cmd)
	if err != nil {
		return nil, err
	}
	if network {
		r.remote.server, r.remote.timeout = cmp.Or(r.remote.server, client.DefaultServer), reload.Timeout
		return r.remote.writer(cmd)
	}
	if err := loadOnly(cmd, "admin-socket", "data", "dry-run"); err != nil {
		return nil, err
	}
	return reload.Client(cmp.Or(r.socket, config.DefaultAdminSocket(r.data)))
}

// apply asks the gateway to serve the catalogue in a folder, unless the catalogue has findings.
func (r *running) apply(cmd *cobra.Command, dir string) (reload.Answer, error) {
	if _, err := readCatalogue(dir); err != nil {
		return reload.Answer{}, err
	}
	files, err := kinds.Files(os.DirFS(dir), dir)
	if err != nil {
		return reload.Answer{}, err
	}
	r.req.Files, r.req.Folder = files, filepath.ToSlash(filepath.Clean(dir))
	return r.send(cmd)
}

// send asks the gateway. It returns an error if the gateway refuses or fails.
func (r *running) send(cmd *cobra.Command) (reload.Answer, error) {
	c, err := r.client(cmd)
	if err != nil {
		return reload.Answer{}, err
	}
	answer, err := reload.Send(cmd.Context(), c, r.req)
	switch {
	case err != nil:
		return answer, err
	case answer.Result == reload.Refused:
		return answer, linesError{answer.Lines}
	case answer.Result == reload.Failed:
		return answer, errors.New(oneLine(linesError{answer.Lines}))
	}
	return answer, nil
}

// print prints the answer of a gateway.
func (r *running) print(std streams, answer reload.Answer) {
	printChanges(std, answer)
	what := map[reload.Result]string{reload.Replaced: "is served now", reload.Unchanged: "is served already"}[answer.Result]
	if r.req.DryRun {
		what = "is served; nothing was changed"
	}
	_, _ = fmt.Fprintf(std.out, "catalogue %s, files %s %s\n", printable(answer.Hash), printable(answer.Files), what)
}

func catalogueReloadCommand(std streams) *cobra.Command {
	var r running
	cmd := &cobra.Command{
		Use:   "reload",
		Short: "Let a running gateway read its --catalogue folder again",
		Long: "Let a running gateway read its --catalogue folder again, and print what that changes.\n\n" +
			"SIGHUP does the same, but it accepts no catalogue that breaks what is stored, and the answer is in the log.",
		Example: "  sluice catalogue reload --data ./sluice-data\n  sluice catalogue reload --server https://sluice.example.com",
		Args:    usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			answer, err := r.send(cmd)
			if err == nil {
				r.print(std, answer)
			}
			return err
		},
	}
	r.register(cmd)
	return cmd
}

func cataloguePurgeCommand(std streams) *cobra.Command {
	var r running
	cmd := &cobra.Command{
		Use:   "purge KIND | KIND.PATH",
		Short: "Remove what is stored and no catalogue names: a kind's resources, or a field's values",
		Long: "Remove what is stored of a kind, or of a field, that the catalogue does not have any more.\n\n" +
			"A running gateway removes the resources of the kind, or the values at a path like spec.email, in the names of the\n" +
			"store. It refuses what its catalogue names. A resource stays while others rely on it or finalizers hold it, as at any\n" +
			"delete; the exit code is then 1. Each removal is a line of the audit log.",
		Example: "  sluice catalogue purge Terminal --dry-run\n  sluice catalogue purge Team.spec.email --data ./sluice-data",
		Args:    usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			r.req.Purge = args[0]
			answer, err := r.send(cmd)
			if err != nil {
				return err
			}
			if answer.Purged == nil {
				return errors.New("the gateway does not know purge; it is of an older release")
			}
			for _, why := range answer.Purged.Why {
				_, _ = fmt.Fprintln(std.err, printable(why))
			}
			done := "purged"
			if r.req.DryRun {
				done = "would be purged"
			}
			_, err = fmt.Fprintf(std.out, "%s: %s %s, %d kept\n", printable(args[0]), plural(answer.Purged.Removed, "resource"), done, answer.Purged.Kept)
			if err == nil && answer.Purged.Kept > 0 {
				err = errReported
			}
			return err
		},
	}
	r.registerSocket(cmd)
	r.registerDryRun(cmd)
	r.registerNetwork(cmd)
	return cmd
}

func catalogueApplyCommand(std streams) *cobra.Command {
	var r running
	cmd := &cobra.Command{
		Use:   "apply DIR",
		Short: "Check a catalogue, and let it replace that of a running gateway",
		Long: "Check a catalogue, replace the files in the running gateway's --catalogue folder by its own, and serve them.\n\n" +
			"The folder is replaced as a whole, and only if the catalogue is served; else it stays as it is. The gateway prints what\n" +
			"clients and stored resources will notice.",
		Example: "  sluice catalogue apply ./kinds --data ./sluice-data\n  sluice catalogue apply ./kinds --server https://sluice.example.com",
		Args:    usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			answer, err := r.apply(cmd, args[0])
			if err == nil {
				r.print(std, answer)
			}
			return err
		},
	}
	r.register(cmd)
	return cmd
}
