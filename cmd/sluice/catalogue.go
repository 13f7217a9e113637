package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	gate "github.com/sluicegw/sluice/backend/catalogue"
	"github.com/sluicegw/sluice/graph/kinds"
)

func catalogueCommand(std streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "catalogue",
		Short:   "Check, print and compare catalogues of kinds, and give them to a running gateway",
		Long:    "Check, print and compare catalogues of kinds, and give them to a running gateway.\n\nA catalogue is a folder of SDL files, as `sluice serve --catalogue` takes it. Without a folder, the catalogue of this release is used.",
		Example: "  sluice catalogue check ./kinds\n  sluice catalogue diff ./kinds --from ./kinds-of-yesterday",
		// Nothing here is to be tidied up, so a signal ends it at once.
		PersistentPreRun: func(*cobra.Command, []string) { signal.Reset(os.Interrupt, syscall.SIGTERM) },
		RunE: func(cmd *cobra.Command, args []string) error {
			return usageError{fmt.Errorf("check, print, diff, apply or reload is wanted; see %s --help", cmd.CommandPath())}
		},
	}
	cmd.AddCommand(catalogueCheckCommand(std), cataloguePrintCommand(std), catalogueDiffCommand(std), catalogueApplyCommand(std), catalogueReloadCommand(std))
	return cmd
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
			noun := "kinds"
			if len(c.kinds) == 1 {
				noun = "kind"
			}
			_, _ = fmt.Fprintf(std.out, "%d %s, %d types, catalogue %s, files %s\n", len(c.kinds), noun, len(c.api.Types), c.outline.Hash(), c.files)
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
	var from, format string
	cmd := &cobra.Command{
		Use:   "diff [DIR]",
		Short: "Print what clients and stored resources would notice of a catalogue",
		Long: "Print what clients, manifests and stored resources would notice of a catalogue, compared with another one or the one of this\n" +
			"release, the most severe changes first: breaking (of what is stored, which a gateway refuses without --allow-breaking),\n" +
			"breaks clients, dangerous (something works, but differently), and safe ones without a mark.\n\n" +
			"The exit code is 1 if a change breaks clients or what is stored.",
		Example: "  sluice catalogue diff ./kinds --from ./kinds-of-yesterday\n  sluice catalogue diff ./kinds -o json",
		Args:    usage(cobra.MaximumNArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			to, err := readCatalogue(directory(args))
			if err != nil {
				return err
			}
			was, err := readCatalogue(from)
			if err != nil {
				return err
			}
			changes := to.changes(was)
			if err := writeChanges(std.out, changes, format); err != nil {
				return err
			}
			if len(changes) > 0 && changes[0].Severity >= gate.BreaksClients {
				return errReported
			}
			return nil
		},
	}
	cmd.Flags().StringVarP(&format, "output", "o", "text", "text or json: an array of {severity, kind, path, message, place}")
	cmd.Flags().StringVar(&from, "from", "", "folder of the catalogue to compare with; empty: that of this release")
	return cmd
}

// writeChanges writes changes as text, one a line, or as JSON.
func writeChanges(w io.Writer, changes []gate.Change, format string) error {
	type change struct {
		Severity gate.Severity `json:"severity"`
		Kind     string        `json:"kind"`
		Path     string        `json:"path,omitempty"`
		Message  string        `json:"message"`
		Place    string        `json:"place,omitempty"`
	}
	switch format {
	case "text":
		for _, c := range changes {
			_, _ = fmt.Fprintln(w, c)
		}
		return nil
	case "json":
		out := []change{}
		for _, c := range changes {
			out = append(out, change{c.Severity, c.Kind, c.Path, c.What, c.Place})
		}
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		return enc.Encode(out)
	}
	return usageError{fmt.Errorf("output: %q; accepted are text, json", format)}
}
