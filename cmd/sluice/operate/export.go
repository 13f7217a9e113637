package operate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend/state"
	"github.com/sluicegw/sluice/cmd/sluice/command"
	"github.com/sluicegw/sluice/cmd/sluice/config"
	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/gateway"
	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
	"github.com/sluicegw/sluice/graph/client"
)

// exportFlags are the flags of an export. With a store in the flags, the command reads a store that no gateway serves.
// Otherwise it asks a gateway: over the network if a server or a context is on the command line, or else over the admin
// socket.
type exportFlags struct {
	gatewayRequest
	store        offlineStore
	at, to       string
	noSecrets    bool
	plainSecrets bool
	// from is the path of an export to convert. output is the format of the result.
	from, output         string
	catalogue, namespace string
}

func ExportCommand(std terminal.Streams) *cobra.Command {
	var f exportFlags
	cmd := &cobra.Command{
		Use:   "export --to FILE | --from FILE -o manifest [KIND...]",
		Short: "Write everything that is stored to a file, from which another store can be filled",
		Long: "Write everything that is stored to a file: resources with uid, times, status, finalizers, references and expiry, roles and\n" +
			"bindings, accepted catalogues, and secrets. `sluice serve --bootstrap FILE` fills an empty store with it. Others may\n" +
			"write meanwhile: the file is one state. It is complete if it has its name; until then it is FILE.part.\n\n" +
			"A running gateway is asked over its admin socket, or over the network with --server or --context, which needs the\n" +
			"verb EXPORT. With --store, the command opens the store itself, while no gateway runs. Secrets are encrypted with the\n" +
			"first key of the gateway (encryption-keys-file). Without keys, they have to be left out with --no-secrets, or taken in\n" +
			"plain form with --plain-secrets, which is not possible over the network.\n\n" +
			"With --from, a file is read instead, and resources of it are printed as manifests, which `sluice apply` takes: to bring\n" +
			"back some of them into a store that has others. With the keys, manifests have write-only values; without, what is left\n" +
			"out is named, and the exit code is 1.",
		Example: "  sluice export --to state.gz\n  sluice export --to state.gz --server https://gateway.example.com:8080\n" +
			"  sluice export --to state.gz --store ./sluice-data\n  sluice export --from state.gz -o manifest -n web subnet | sluice apply -f -\n  zcat state.gz | jq -r .kind | sort | uniq -c",
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.from != "" {
				return f.printManifests(cmd, std, args)
			}
			return f.run(cmd, std, args)
		},
	}
	f.registerSocket(cmd)
	f.registerNetwork(cmd)
	flags := cmd.Flags()
	flags.Lookup("server").Usage = "URL of the gateway, to ask it over the network; that needs the verb EXPORT"
	flags.StringVar(&f.to, "to", "", "file to write (required)")
	flags.StringVar(&f.at, "store", "", "folder of an embedded store, or URL of a Redis, to export without a gateway")
	flags.BoolVar(&f.noSecrets, "no-secrets", false, "leave secrets out: they are empty in a store that is filled with the file")
	flags.BoolVar(&f.plainSecrets, "plain-secrets", false, "write secrets in plain form, so that everybody who has the file can read them")
	flags.StringVar(&f.from, "from", "", "file that an export has written, to print resources of it")
	flags.StringVarP(&f.output, "output", "o", "", "form of what is printed with --from: manifest")
	flags.StringVarP(&f.namespace, "namespace", "n", "", "namespace of the resources that are printed with --from (default: all, and GLOBAL ones)")
	flags.StringVar(&f.catalogue, "catalogue", "", "folder of the kinds for --from (default: the built-in kinds)")
	f.store.register(cmd)
	return cmd
}

// printManifests converts an export to manifests and prints them.
func (f *exportFlags) printManifests(cmd *cobra.Command, std terminal.Streams, kinds []string) error {
	for _, name := range []string{
		"to", "store", "server", "context", "admin-socket", "data", "no-secrets", "plain-secrets",
	} {
		if config.Named(cmd.Flags(), name) {
			return exit.Usage(fmt.Errorf("%s: it has no effect with --from", name))
		}
	}
	if f.output != "manifest" {
		return exit.Usage(fmt.Errorf("output: %q; with --from, -o manifest is accepted", f.output))
	}
	if err := command.LoadOnly(cmd, "encryption-keys-file", "encryption-kms", "catalogue"); err != nil {
		return err
	}
	export := gateway.ExportManifests{
		File: f.from, Catalogue: f.catalogue, Keys: f.store.keys, Namespace: f.namespace, Kinds: kinds,
	}
	count, err := export.Run(cmd.Context(), std.Out, func(line string) {
		_, _ = fmt.Fprintln(std.Err, "sluice: warning: "+output.Printable(line))
	})
	switch {
	case err != nil:
		return err
	case count.Lacking > 0:
		_, _ = fmt.Fprintf(std.Err, "sluice: left out or incomplete: %s\n", output.Plural(count.Lacking, "resource"))
		return exit.ErrReported
	case count.Written == 0:
		return exit.NotFound(fmt.Errorf("%s has no such resources", f.from))
	}
	return nil
}

// secrecy returns the form of secrets in the export.
func (f *exportFlags) secrecy() (state.Secrecy, error) {
	switch {
	case f.noSecrets && f.plainSecrets:
		return "", errors.New("no-secrets, plain-secrets: choose one of them")
	case f.noSecrets:
		return state.None, nil
	case f.plainSecrets:
		return state.Plain, nil
	}
	return state.Sealed, nil
}

func (f *exportFlags) run(cmd *cobra.Command, std terminal.Streams, args []string) error {
	secrets, err := f.secrecy()
	for _, name := range []string{"output", "namespace", "catalogue"} {
		if config.Named(cmd.Flags(), name) {
			return exit.Usage(fmt.Errorf("%s: it has no effect without --from", name))
		}
	}
	switch {
	case len(args) > 0:
		return exit.Usage(fmt.Errorf("%q: kinds are accepted with --from; an export has everything", args[0]))
	case err != nil:
		return exit.Usage(err)
	case f.to == "":
		return exit.Usage(errors.New("to: a file is wanted: --to FILE"))
	}
	source, err := f.source(cmd, secrets)
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }()
	for _, flag := range []string{"data", "store"} {
		if err := checkTarget(cmd, f.to, flag); err != nil {
			return err
		}
	}
	written, err := saveExport(f.to, source, std)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(std.Out, "%s: %s, secrets %s\n",
		output.Printable(f.to), output.Plural(written.resources, "resource"), written.header.Secrets)
	for _, id := range written.end.Keys {
		if id != written.header.Key {
			_, _ = fmt.Fprintf(std.Err, "sluice: warning: some secrets are encrypted with key %q, which the exporter does not have: "+
				"the file fills a store only together with that key; if it is lost, export with --no-secrets\n", id)
		}
	}
	if err == nil && written.end.Unreadable > 0 {
		_, _ = fmt.Fprintf(std.Err, "sluice: warning: %s could not be read, and the file does not have them\n", output.Plural(written.end.Unreadable, "record"))
		for _, key := range written.unreadable {
			_, _ = fmt.Fprintln(std.Err, "  "+output.Printable(key))
		}
		err = exit.ErrReported
	}
	return err
}

// source starts an export and returns a reader of it.
func (f *exportFlags) source(cmd *cobra.Command, secrets state.Secrecy) (io.ReadCloser, error) {
	if config.Named(cmd.Flags(), "store") {
		for _, name := range []string{"server", "context", "admin-socket", "data"} {
			if config.Named(cmd.Flags(), name) {
				return nil, exit.Usage(fmt.Errorf("%s: it has no effect with --store", name))
			}
		}
		if err := f.store.load(cmd); err != nil {
			return nil, err
		}
		export := gateway.OfflineExport{Store: f.store.at(f.at), Keys: f.store.keys, Secrets: secrets}
		return piped(cmd.Context(), export), nil
	}
	if err := f.store.unused(cmd); err != nil {
		return nil, err
	}
	network, err := f.overNetwork(cmd)
	if err != nil {
		return nil, err
	}
	if network && secrets == state.Plain {
		return nil, exit.Usage(errors.New("plain-secrets: over the network secrets are encrypted, or left out; use the admin socket, or --store while no gateway runs"))
	}
	c, err := f.client(cmd)
	if err != nil {
		return nil, err
	}
	return c.Download(cmd.Context(), client.DownloadRequest{
		Path: gateway.ExportPath, Query: url.Values{gateway.ExportSecrets: {string(secrets)}},
	})
}

// piped starts an export of a store without a gateway, and returns a reader of it.
func piped(ctx context.Context, export gateway.OfflineExport) io.ReadCloser {
	ctx, stop := context.WithCancel(ctx)
	r, w := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.CloseWithError(export.Run(ctx, w, zap.NewNop()))
	}()
	return &pipe{PipeReader: r, end: func() {
		stop()
		_ = r.Close()
		<-done
	}}
}

// pipe is a reader of an export. Close waits until the export has ended.
type pipe struct {
	*io.PipeReader
	end func()
}

// Close implements [io.Closer].
func (p *pipe) Close() error {
	p.end()
	return nil
}

// maxNamed is the maximum number of unreadable records that are named.
const maxNamed = 10

// savedExport describes an export that was written to a file.
type savedExport struct {
	header state.Header
	end    state.End
	// resources is the number of resources, as a bootstrap counts them.
	resources  int
	unreadable []string
}

// saveExport writes an export to a file. The file gets its name when it is complete and synced.
func saveExport(path string, from io.Reader, std terminal.Streams) (out savedExport, err error) {
	part, err := createPart("to", path)
	if err != nil {
		return out, err
	}
	defer func() {
		if err != nil {
			part.discard()
		}
	}()
	if out, err = checkExport(io.TeeReader(from, part), std); err != nil {
		return out, err
	}
	if err = part.complete(); err != nil {
		return out, err
	}
	return out, part.name()
}

// checkExport reads an export completely and shows the progress on a terminal.
func checkExport(from io.Reader, std terminal.Streams) (out savedExport, err error) {
	in, err := state.NewReader(from)
	if err != nil {
		return out, fmt.Errorf("export: %w", err)
	}
	defer std.Show("")
	out.header = in.Header()
	var resources state.ResourceCounter
	for n := 1; ; n++ {
		l, err := in.Next()
		if errors.Is(err, io.EOF) {
			out.end = in.End()
			out.resources = resources.Count()
			return out, nil
		}
		if err != nil {
			return out, fmt.Errorf("export: %w", err)
		}
		if l.Unreadable && len(out.unreadable) < maxNamed {
			out.unreadable = append(out.unreadable, l.Resource.Key.String())
		}
		resources.Add(&l)
		if n%1000 == 0 {
			std.Show(fmt.Sprintf("%d resources ...", resources.Count()))
		}
	}
}
