package operate

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/command"
	"github.com/sluicegw/sluice/cmd/sluice/config"
	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/cmd/sluice/reload"
	"github.com/sluicegw/sluice/cmd/sluice/remote"
	"github.com/sluicegw/sluice/cmd/sluice/sdl"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
	"github.com/sluicegw/sluice/graph/client"
	"github.com/sluicegw/sluice/graph/release"
)

// gatewayRequest has the flags of commands that send a catalogue to a running gateway. They use the network if a server
// or a context is on the command line, otherwise the admin socket.
type gatewayRequest struct {
	socket, data string
	remote       remote.Flags
	req          reload.Request
}

func (r *gatewayRequest) register(cmd *cobra.Command) {
	r.registerSocket(cmd)
	cmd.Flags().BoolVar(
		&r.req.AllowBreaking,
		"allow-breaking",
		false,
		"accept that the catalogue breaks what is stored; only this time",
	)
	r.registerDryRun(cmd)
	r.registerNetwork(cmd)
}

func (r *gatewayRequest) registerSocket(cmd *cobra.Command) {
	cmd.Flags().StringVar(
		&r.socket,
		"admin-socket",
		"",
		"admin socket of the gateway; by default that in the folder of --data",
	)
	cmd.Flags().StringVar(&r.data, "data", config.NewGateway().Store.Data, "folder of the gateway's embedded store")
}

func (r *gatewayRequest) registerDryRun(cmd *cobra.Command) {
	cmd.Flags().Var((*command.DryRun)(&r.req.DryRun), "dry-run", "say what would change, and change nothing")
	cmd.Flags().Lookup("dry-run").NoOptDefVal = "server"
}

// named reports whether the command line names a running gateway, on the network or by its socket. It returns an error
// for flags that would have no effect.
func (r *gatewayRequest) named(cmd *cobra.Command) (bool, error) {
	network, err := r.overNetwork(cmd)
	if network || err != nil {
		return network, err
	}
	socket := config.Named(cmd.Flags(), "data") || config.Named(cmd.Flags(), "admin-socket")
	for _, name := range folderFlags {
		if socket && config.Named(cmd.Flags(), name) {
			return true, exit.Usage(fmt.Errorf("%s: it has no effect with --data or --admin-socket", name))
		}
	}
	return socket, nil
}

func (r *gatewayRequest) registerNetwork(cmd *cobra.Command) {
	cmd.Flags().StringVar(
		&r.remote.Server,
		"server",
		"",
		"URL of the gateway, to ask it over the network; that needs the verb CATALOGUE",
	)
	cmd.Flags().StringVar(
		&r.remote.Context,
		"context",
		"",
		"context that names the gateway to ask over the network, see sluice context",
	)
	remote.RegisterAccess(cmd, &r.remote.Access)
}

// overNetwork reports whether the command line names a gateway on the network. It returns an error for flags that would
// have no effect.
func (r *gatewayRequest) overNetwork(cmd *cobra.Command) (bool, error) {
	flags := cmd.Flags()
	network := config.Named(flags, "server") || config.Named(flags, "context")
	excluded, why := remote.AccessFlags, "without --server or --context"
	if network {
		excluded = append([]string{"admin-socket", "data"}, folderFlags...)
		why = "with --server or --context"
	}
	for _, name := range excluded {
		if config.Named(flags, name) {
			return network, exit.Usage(fmt.Errorf("%s: it has no effect %s", name, why))
		}
	}
	return network, nil
}

// client returns a client of the gateway. The environment may name the gateway and request a dry run. Breaking changes
// can only be accepted on the command line.
func (r *gatewayRequest) client(cmd *cobra.Command) (*client.Client, error) {
	network, err := r.overNetwork(cmd)
	if err != nil {
		return nil, err
	}
	if network {
		r.remote.Server, r.remote.Timeout = cmp.Or(r.remote.Server, client.DefaultServer), reload.Timeout
		return r.remote.Writer(cmd)
	}
	if err := command.LoadOnly(cmd, "admin-socket", "data", "dry-run"); err != nil {
		return nil, err
	}
	return reload.Client(cmp.Or(r.socket, config.DefaultAdminSocket(r.data)))
}

// apply asks the gateway to serve the catalogue in a folder. It returns an error if the catalogue has findings.
func (r *gatewayRequest) apply(cmd *cobra.Command, dir string) (reload.Answer, error) {
	files, err := release.ReadDir(dir)
	if err != nil {
		return reload.Answer{}, exit.Usage(err)
	}
	c, err := sdl.FromTexts(files, dir)
	if err == nil {
		err = c.CheckReleased()
	}
	if err != nil {
		return reload.Answer{}, err
	}
	r.req.Files, r.req.Folder = files, filepath.ToSlash(filepath.Clean(dir))
	return r.send(cmd)
}

// send sends the request and returns the answer. It returns an error if the gateway refuses the request or fails.
func (r *gatewayRequest) send(cmd *cobra.Command) (reload.Answer, error) {
	c, err := r.client(cmd)
	if err != nil {
		return reload.Answer{}, err
	}
	answer, err := reload.Send(cmd.Context(), c, r.req)
	switch {
	case err != nil:
		return answer, err
	case answer.Result == reload.Refused:
		return answer, exit.Lines(answer.Lines)
	case answer.Result == reload.Failed:
		return answer, errors.New(exit.OneLine(exit.Lines(answer.Lines)))
	}
	return answer, nil
}

func (r *gatewayRequest) print(std terminal.Streams, answer reload.Answer) {
	printChanges(std, answer)
	givenUp := "given up"
	if r.req.DryRun {
		givenUp = "would be given up"
	}
	for _, line := range answer.GivenUp {
		_, _ = fmt.Fprintf(std.Err, "sluice: warning: %s: %s\n", givenUp, output.Printable(line))
	}
	what := map[reload.Result]string{
		reload.Replaced:  "is served now",
		reload.Unchanged: "is served already",
	}[answer.Result]
	if r.req.DryRun {
		what = map[reload.Result]string{
			reload.Replaced:  "would be served; nothing was changed",
			reload.Unchanged: "is served already; nothing was changed",
		}[answer.Result]
	}
	_, _ = fmt.Fprintf(std.Out, "catalogue %s, files %s %s\n",
		output.Printable(answer.Hash), output.Printable(answer.Files), what)
}
