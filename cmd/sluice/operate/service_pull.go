package operate

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/cmd/sluice/command"
	"github.com/sluicegw/sluice/cmd/sluice/config"
	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/cmd/sluice/sdl"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
	"github.com/sluicegw/sluice/graph/release"
)

// servicePull has the flags of `sluice service pull`.
type servicePull struct {
	std        terminal.Streams
	connection serviceConnection
	name       string
	to         string
	catalogue  string
	standard   standardPull
	// protocolChosen reports whether --protocol was given.
	protocolChosen bool
}

func servicePullCommand(std terminal.Streams) *cobra.Command {
	p := servicePull{std: std}
	cmd := &cobra.Command{
		Use:   "pull ADDRESS",
		Short: "Write the kinds of a resource service as a file of a catalogue",
		Long: "Ask a resource service for the SDL of its kinds, and write it as a file of a catalogue: the kinds are\n" +
			"owned by the service, and have the verbs that it can carry out. The SDL is checked, and nothing is written if\n" +
			"it cannot be served. Review the file before you serve it: what the service says later does not change it.\n\n" +
			"With --grpc, the service is one of standard methods (CreateFoo, GetFoo, ListFoos, ...) that knows nothing of\n" +
			"the gateway. Its descriptors are asked for by reflection, or read from a file in the place of the address. A\n" +
			"second file, the mapping, says how its methods are called. What cannot be expressed is named with the reason.",
		Example: "  sluice service pull http://127.0.0.1:9310\n" +
			"  sluice service pull https://teams.example.org --catalogue kinds --to kinds/teams.graphqls\n" +
			"  sluice service pull --grpc foos.binpb --kind Foo --to kinds/foos.graphqls --mapping foos.yaml",
		Args: command.Args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p.protocolChosen = cmd.Flags().Changed("protocol")
			return p.run(cmd.Context(), args[0])
		},
	}
	p.connection.register(cmd)
	p.standard.register(cmd)
	f := cmd.Flags()
	f.StringVar(&p.name, "name", "", "name of the service in the setting services (default: the one that it calls itself)")
	f.StringVar(&p.to, "to", "", "file to write (default: the standard output)")
	f.StringVar(&p.catalogue, "catalogue", "",
		"folder of the catalogue to which the kinds are added, if they refer to kinds in it (default: none)")
	return cmd
}

func (p servicePull) run(ctx context.Context, address string) error {
	if p.to != "" && filepath.Ext(p.to) != ".graphqls" {
		return exit.Usage(fmt.Errorf("to: %s: a name that ends with .graphqls is accepted", output.Printable(p.to)))
	}
	if err := p.standard.validate(p.to); err != nil {
		return exit.Usage(err)
	}
	if p.standard.grpc {
		return p.runStandard(ctx, address)
	}
	client, err := p.connection.client(ctx, address)
	if err != nil {
		return exit.Usage(err)
	}
	defer client.Close()
	d, err := client.Describe(ctx)
	if err != nil {
		return err
	}
	name := p.name
	if name == "" {
		name = d.Service
	}
	if err := config.CheckServiceName(name); err != nil {
		return exit.Usage(fmt.Errorf("name: %q: %w; choose one with --name", output.Printable(name), err))
	}
	text, err := ownedSDL(d, name, p.file(name))
	if err != nil {
		return err
	}
	served, err := p.check(text, name)
	if err != nil {
		return err
	}
	if err := p.write(text); err != nil {
		return err
	}
	for _, k := range d.Kinds {
		if !slices.Contains(served, k.Name) {
			_, _ = fmt.Fprintf(p.std.Err, "sluice: note: the service has the kind %s, which its SDL does not have\n", k.Name)
		}
	}
	if p.to == "" {
		return nil
	}
	_, err = fmt.Fprintf(p.std.Out, "%s: %s of the service %s\n",
		output.Printable(p.to), output.Plural(len(served), "kind"), name)
	return err
}

// file returns the name of the SDL file in the catalogue.
func (p servicePull) file(name string) string {
	if p.to != "" {
		return filepath.Base(p.to)
	}
	return name + ".graphqls"
}

// check returns the kinds that the service owns. If the SDL cannot be served, the error has the place of each problem.
func (p servicePull) check(text, name string) ([]string, error) {
	texts := map[string]string{}
	if p.catalogue != "" {
		var err error
		texts, err = release.ReadDir(p.catalogue)
		if err != nil {
			return nil, exit.Usage(err)
		}
		own, _ := release.Split(texts) // its released versions may not have the kinds yet
		texts = own
	}
	texts[p.file(name)] = text
	c, err := sdl.FromTexts(texts, filepath.Dir(p.to))
	if err != nil {
		return nil, err
	}
	return ownedBy(c.Kinds, name), nil
}

func ownedBy(kinds []descriptor.Kind, service string) (names []string) {
	for _, k := range kinds {
		if k.Service == service {
			names = append(names, k.Name)
		}
	}
	return names
}

func (p servicePull) write(text string) error {
	if p.to == "" {
		_, err := fmt.Fprint(p.std.Out, text)
		return err
	}
	return writeFile("to", p.to, []byte(text))
}
