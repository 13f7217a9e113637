package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	gate "github.com/sluicegw/sluice/backend/catalogue"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/cmd/sluice/reload"
	"github.com/sluicegw/sluice/graph/kinds"
)

func catalogueCommand(std streams) *cobra.Command {
	return withCommands(&cobra.Command{
		Use:     "catalogue",
		Short:   "Check, print and compare catalogues of kinds, and give them to a running gateway",
		Long:    "Check, print and compare catalogues of kinds, and give them to a running gateway.\n\nA catalogue is a folder of SDL files, as `sluice serve --catalogue` takes it. Without a folder, the catalogue of this release is used.",
		Example: "  sluice catalogue check ./kinds\n  sluice catalogue diff ./kinds --from ./kinds-of-yesterday",
		// Nothing here is to be tidied up, so a signal ends it at once.
		PersistentPreRun: func(*cobra.Command, []string) { signal.Reset(os.Interrupt, syscall.SIGTERM) },
	}, catalogueCheckCommand(std), cataloguePrintCommand(std), catalogueDiffCommand(std), catalogueApplyCommand(std), catalogueReloadCommand(std))
}

// directory is the argument of a command that takes one or none.
func directory(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

func catalogueCheckCommand(std streams) *cobra.Command {
	return &cobra.Command{
		Use:     "check [DIR]",
		Short:   "Say whether a catalogue can be served, and what is wrong with it by file and line",
		Example: "  sluice catalogue check ./kinds",
		Args:    usage(cobra.MaximumNArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			c, err := readCatalogue(directory(args))
			if err != nil {
				return err
			}
			own := len(slices.DeleteFunc(slices.Clone(c.kinds), func(k descriptor.Kind) bool { return k.Name == access.RoleKind || k.Name == access.BindingKind }))
			_, _ = fmt.Fprintf(std.out, "%s, %d types, catalogue %s, files %s\n", plural(own, "kind"), len(c.api.Types), c.outline.Hash(), c.files)
			return nil
		},
	}
}

func cataloguePrintCommand(std streams) *cobra.Command {
	return &cobra.Command{
		Use:     "print [DIR]",
		Short:   "Print the API that is derived from a catalogue, as SDL",
		Example: "  sluice catalogue print ./kinds > api.graphql",
		Args:    usage(cobra.MaximumNArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			c, err := readCatalogue(directory(args))
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(std.out, kinds.Print(c.api, nil))
			return err
		},
	}
}

func catalogueDiffCommand(std streams) *cobra.Command {
	from, format := "", "text"
	asked := running{req: reload.Request{DryRun: true, AllowBreaking: true}}
	cmd := &cobra.Command{
		Use:   "diff [DIR]",
		Short: "Print what clients and stored resources would notice of a catalogue",
		Long: "Print what clients, manifests and stored resources would notice of a catalogue, compared with another one, the one of this\n" +
			"release or, with --server or --context, the one of a running gateway, the most severe changes first: breaking (of what is stored, which a gateway refuses without --allow-breaking),\n" +
			"breaks clients, dangerous (something works, but differently), and safe ones without a mark.\n\n" +
			"The exit code is 1 if a change breaks clients or what is stored.",
		Example: "  sluice catalogue diff ./kinds --from ./kinds-of-yesterday\n  sluice catalogue diff ./kinds -o json\n  sluice catalogue diff ./kinds --server https://sluice.example.com",
		Args:    usage(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			network, err := asked.overNetwork(cmd)
			if err != nil {
				return err
			}
			var found reload.Answer
			switch {
			case network && len(args) == 0:
				return usageError{errors.New("server, context: name the folder to compare with the gateway's catalogue")}
			case network:
				found, err = asked.apply(cmd, args[0])
			default:
				found.Changes, err = compareFolders(from, directory(args))
			}
			if err != nil {
				return err
			}
			if format == "json" {
				enc := json.NewEncoder(std.out)
				enc.SetEscapeHTML(false)
				enc.SetIndent("", "  ")
				err = enc.Encode(append([]gate.Change{}, found.Changes...))
			} else {
				printChanges(std, found)
			}
			if err != nil {
				return err
			}
			if len(found.Changes) > 0 && found.Changes[0].Severity >= gate.BreaksClients {
				return errReported
			}
			return nil
		},
	}
	addChoice(cmd, &format, pflag.Flag{Name: "output", Shorthand: "o", Usage: "text or json: an array of {severity, kind, path, message, place}"}, "text", "json")
	cmd.Flags().StringVar(&from, "from", "", "folder of the catalogue to compare with; empty: that of this release")
	asked.registerNetwork(cmd)
	return cmd
}

// compareFolders returns the differences from one catalogue to another.
func compareFolders(from, to string) ([]gate.Change, error) {
	is, err := readCatalogue(to)
	if err != nil {
		return nil, err
	}
	was, err := readCatalogue(from)
	if err != nil {
		return nil, err
	}
	return is.changes(was), nil
}

// printChanges prints what a gateway, its clients and stored resources would notice, one finding a line.
func printChanges(std streams, found reload.Answer) {
	for _, c := range found.Changes {
		_, _ = fmt.Fprintln(std.out, printable(c.String()))
	}
	for _, line := range found.Tightened {
		_, _ = fmt.Fprintln(std.out, printable(line))
	}
}
