package operate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/manifest"
	"github.com/sluicegw/sluice/backend/service/owner"
	"github.com/sluicegw/sluice/backend/service/owner/kit"
	"github.com/sluicegw/sluice/backend/service/owner/remote"
	"github.com/sluicegw/sluice/backend/service/owner/standard"
	"github.com/sluicegw/sluice/cmd/sluice/command"
	"github.com/sluicegw/sluice/cmd/sluice/config"
	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/input"
	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
	"github.com/sluicegw/sluice/graph/kinds"
)

// serviceTest has the flags of `sluice service test`.
type serviceTest struct {
	std        terminal.Streams
	connection serviceConnection
	kinds      []string
	examples   []string
	namespace  string
	seed       uint64
	restart    string
	patience   time.Duration
	// mapping is the mapping of a service with standard methods; empty for a service that implements the contract.
	mapping string
}

func serviceTestCommand(std terminal.Streams) *cobra.Command {
	t := serviceTest{std: std}
	cmd := &cobra.Command{
		Use:   "test ADDRESS",
		Short: "Test whether a resource service keeps the promises of the contract",
		Long: "Test whether a resource service keeps the promises of the contract, one by one. Each line says what became of a\n" +
			"promise, and what broke it; the exit code is 1 if one is broken. A promise that needs what the service says it\n" +
			"lacks is skipped.\n\n" +
			"Resources are made, changed and deleted, all with names that begin with sluice-test-. Their specs are generated\n" +
			"from the SDL of the service; if it accepts none of these, give manifests that it accepts with --example.",
		Example: "  sluice service test http://127.0.0.1:9310\n" +
			"  sluice service test https://teams.example.org --kind Team --example team.yaml --restart 'systemctl restart teams'",
		Args: command.Args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("seed") {
				t.seed = uint64(rand.Uint32())
			}
			if t.mapping != "" && !cmd.Flags().Changed("protocol") {
				t.connection.protocol = string(remote.GRPC)
			}
			return t.run(cmd.Context(), args[0])
		},
	}
	t.connection.register(cmd)
	f := cmd.Flags()
	f.StringSliceVar(&t.kinds, "kind", nil, "kind to test; can be repeated (default: all kinds of the service)")
	f.StringArrayVarP(&t.examples, "example", "f", nil, "file or folder with manifests whose specs are used; can be repeated")
	f.StringVarP(&t.namespace, "namespace", "n", "", "namespace of what is made (default: that of the examples, or else default)")
	f.Uint64Var(&t.seed, "seed", 0, "number that chooses specs and names, to repeat a run (default: another one each time)")
	f.StringVar(&t.restart, "restart", "", "shell command that restarts the service, after which it must have kept everything")
	f.StringVar(&t.mapping, "mapping", "",
		"file that says how the methods of a service of standard methods are called (default: it has the contract)")
	config.DurationVar(f, &t.patience, "patience", kit.DefaultPatience, "how long a change may take to be reported, and a restart to end")
	return cmd
}

func (t serviceTest) run(ctx context.Context, address string) error {
	if t.patience <= 0 {
		return exit.Usage(fmt.Errorf("--patience is %v; more than 0s is accepted, such as 30s", t.patience))
	}
	examples, err := t.readExamples()
	if err != nil {
		return exit.Usage(err)
	}
	client, sdl, err := t.client(ctx, address)
	if err != nil {
		return exit.Usage(err)
	}
	defer client.Close()
	d, err := client.Describe(ctx)
	if err != nil {
		return err
	}
	if sdl != "" {
		d.SDL = sdl
	}
	described, err := describedKinds(d)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(t.std.Out, "service %s, seed %d\n", output.Printable(d.Service), t.seed); err != nil {
		return err
	}
	tested := kit.Config{
		Service: client, Kinds: t.kinds, Descriptors: described, Examples: examples, Namespace: t.namespace, Seed: t.seed,
		Patience: t.patience, Report: t.print,
	}
	if t.restart != "" {
		tested.Restart = t.restartService
	}
	if t.connection.protocol == string(remote.ConnectJSON) && t.mapping == "" {
		tested.Raw, err = t.raw(ctx, address)
		if err != nil {
			return exit.Usage(err)
		}
	}
	results, err := kit.Run(ctx, tested)
	if errors.Is(err, kit.ErrChoice) {
		err = exit.Usage(err)
	}
	counts := map[kit.Status]int{}
	for _, r := range results {
		counts[r.Status]++
	}
	if len(results) > 0 {
		_, _ = fmt.Fprintf(t.std.Out, "%s kept, %d broken, %d skipped\n",
			output.Plural(counts[kit.Passed], "promise"), counts[kit.Failed], counts[kit.Skipped])
	}
	if err == nil && counts[kit.Failed] > 0 {
		err = exit.ErrReported
	}
	return err
}

// testedService is a client of the service that is tested.
type testedService interface {
	owner.Service
	Close()
}

// client returns a client of the service. If the service cannot return its SDL itself, client also returns the SDL.
func (t serviceTest) client(ctx context.Context, address string) (testedService, string, error) {
	if t.mapping == "" {
		client, err := t.connection.client(ctx, address)
		if err != nil {
			return nil, "", err
		}
		return client, "", nil
	}
	mapping, descriptors, err := config.ReadMapping(t.mapping)
	if err != nil {
		return nil, "", err
	}
	limits, err := standardLimits(standard.DefaultLength, standard.DefaultItems)
	if err != nil {
		return nil, "", err
	}
	var names []string
	for name := range mapping.Kinds {
		names = append(names, name)
	}
	described, err := descriptors.Catalogue("tested", names, mapping, limits)
	if err != nil {
		return nil, "", err
	}
	cfg, err := t.connection.config(ctx, address)
	if err != nil {
		return nil, "", err
	}
	client, err := standard.New(standard.Config{Remote: cfg, Descriptors: descriptors, Mapping: mapping})
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", t.mapping, err)
	}
	return client, described.SDL, nil
}

func (t serviceTest) print(r kit.Result) {
	_, _ = fmt.Fprintf(t.std.Out, "%-8s %-10s %-18s %s\n", r.Status, output.Printable(r.Kind), r.Promise, r.Says)
	if r.Detail != "" {
		for line := range strings.Lines(r.Detail) {
			_, _ = fmt.Fprintf(t.std.Out, "%-8s %s\n", "", output.Printable(strings.TrimSuffix(line, "\n")))
		}
	}
}

// describedKinds parses the SDL of a service, if it has any.
func describedKinds(d owner.Description) ([]descriptor.Kind, error) {
	if strings.TrimSpace(d.SDL) == "" {
		return nil, nil
	}
	schema, err := kinds.Load(&ast.Source{Name: "service.graphqls", Input: d.SDL})
	if err != nil {
		return nil, fmt.Errorf("the SDL of the service: %w", err)
	}
	var out []descriptor.Kind
	for _, k := range schema.Kinds {
		out = append(out, k.Kind)
	}
	return out, nil
}

// readExamples reads the manifests of examples, and returns them by kind.
func (t serviceTest) readExamples() (map[string][]owner.Resource, error) {
	out := map[string][]owner.Resource{}
	if len(t.examples) == 0 {
		return out, nil
	}
	docs, err := input.Source{Files: t.examples, Stdin: t.std.In}.Read()
	if err != nil {
		return nil, err
	}
	for _, doc := range docs {
		m, err := manifest.Parse(doc.Text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", doc.Where(), err)
		}
		if m.Kind == "" || len(m.Spec) == 0 {
			return nil, fmt.Errorf("%s: a manifest with a kind and a spec is wanted", doc.Where())
		}
		key := backend.Key{Kind: m.Kind, Namespace: doc.Namespace, Name: m.Metadata.Name}
		out[m.Kind] = append(out[m.Kind], owner.Resource{Key: key, Spec: m.Spec})
	}
	return out, nil
}

// restartService runs the command that restarts the service. The output of the command is written to a file, because a
// service started by it may keep the output open.
func (t serviceTest) restartService(ctx context.Context) error {
	said, err := os.CreateTemp("", "sluice-restart-")
	if err != nil {
		return err
	}
	defer func() {
		_ = said.Close()
		_ = os.Remove(said.Name())
	}()
	cmd := exec.CommandContext(ctx, "sh", "-c", t.restart)
	cmd.Stdout = said
	cmd.Stderr = said
	err = cmd.Run()
	if err == nil {
		return nil
	}
	text, readErr := os.ReadFile(said.Name())
	if readErr != nil {
		return errors.Join(err, readErr)
	}
	return fmt.Errorf("%w: %s", err, bytes.TrimSpace(text))
}

// raw returns a function that sends arbitrary JSON to the service.
func (t serviceTest) raw(
	ctx context.Context, address string,
) (func(context.Context, string, []byte) ([]byte, error), error) {
	secure, err := t.connection.tlsConfig(ctx)
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{TLSClientConfig: secure, ForceAttemptHTTP2: true, DisableKeepAlives: true}
	base := strings.TrimSuffix(address, "/") + "/sluice.resource.v1.ResourceService/"
	return func(ctx context.Context, call string, body []byte) ([]byte, error) {
		ctx, stop := context.WithTimeout(ctx, serviceTimeout)
		defer stop()
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, base+call, bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		request.Header.Set("Content-Type", "application/json")
		answer, err := transport.RoundTrip(request)
		if err != nil {
			return nil, err
		}
		const most = 64 << 20
		text, err := io.ReadAll(io.LimitReader(answer.Body, most))
		err = errors.Join(err, answer.Body.Close())
		if err == nil && answer.StatusCode != http.StatusOK {
			err = fmt.Errorf("the service answers %s: %s", answer.Status, text[:min(len(text), 200)])
		}
		return text, err
	}, nil
}
