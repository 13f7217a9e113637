package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sluicegw/sluice/cmd/sluice/config"
	"github.com/sluicegw/sluice/cmd/sluice/reload"
	"github.com/sluicegw/sluice/graph/kinds"
)

// running are the flags of commands that speak to a gateway over its admin socket.
type running struct {
	socket, data string
	req          reload.Request
}

func (r *running) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&r.socket, "admin-socket", "", "admin socket of the gateway; by default that in the folder of --data")
	f.StringVar(&r.data, "data", config.NewGateway().Store.Data, "folder of the gateway's embedded store")
	f.BoolVar(&r.req.AllowBreaking, "allow-breaking", false, "accept that the catalogue breaks what is stored; only this time")
	f.Var((*dryRun)(&r.req.DryRun), "dry-run", "say what would change, and change nothing")
	f.Lookup("dry-run").NoOptDefVal = "server"
}

// send asks the gateway, and prints what it answers. The environment says where the
// gateway is and may ask for a dry run; what is to be accepted is said on the command line.
func (r *running) send(cmd *cobra.Command, std streams) error {
	where := pflag.NewFlagSet(cmd.Name(), pflag.ContinueOnError)
	for _, name := range []string{"admin-socket", "data", "dry-run"} {
		where.AddFlag(cmd.Flags().Lookup(name))
	}
	if err := loadFlags(cmd, where); err != nil {
		return err
	}
	path := r.socket
	if path == "" {
		path = config.DefaultAdminSocket(r.data)
	}
	answer, err := reload.Send(cmd.Context(), path, r.req)
	if err != nil {
		return err
	}
	switch answer.Result {
	case reload.Refused:
		return linesError{answer.Lines}
	case reload.Failed:
		return errors.New(oneLine(linesError{answer.Lines}))
	}
	for _, change := range answer.Changes {
		_, _ = fmt.Fprintln(std.out, printable(change))
	}
	what := map[reload.Result]string{reload.Replaced: "is served now", reload.Unchanged: "is served already"}[answer.Result]
	if r.req.DryRun {
		what = "is served; nothing was changed"
	}
	_, _ = fmt.Fprintf(std.out, "catalogue %s, files %s %s\n", printable(answer.Hash), printable(answer.Files), what)
	return nil
}

func catalogueReloadCommand(std streams) *cobra.Command {
	var r running
	cmd := &cobra.Command{
		Use:   "reload",
		Short: "Let a running gateway read its --catalogue folder again",
		Long: "Let a running gateway read its --catalogue folder again, and print what that changes.\n\n" +
			"SIGHUP does the same, but it accepts no catalogue that breaks what is stored, and the answer is in the log.",
		Example: "  sluice catalogue reload --data ./sluice-data",
		Args:    usage(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return r.send(cmd, std) },
	}
	r.register(cmd)
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
		Example: "  sluice catalogue apply ./kinds --data ./sluice-data",
		Args:    usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := readCatalogue(args[0]); err != nil {
				return err
			}
			files, err := kinds.Files(os.DirFS(args[0]), args[0])
			if err != nil {
				return err
			}
			r.req.Files, r.req.Folder = files, filepath.ToSlash(filepath.Clean(args[0]))
			return r.send(cmd, std)
		},
	}
	r.register(cmd)
	return cmd
}
