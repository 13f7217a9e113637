package main

import (
	"fmt"
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
	var from string
	cmd := &cobra.Command{
		Use:   "diff [DIR]",
		Short: "Print what a catalogue changes of what is stored and read",
		Long: "Print what a catalogue changes of what is stored and read, compared with another one or that of this release.\n\n" +
			"The exit code is 1 if a change is breaking: if resources that are stored could no longer be read whole.",
		Example: "  sluice catalogue diff ./kinds --from ./kinds-of-yesterday",
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
			changes := to.changes(was.outline)
			for _, c := range changes {
				_, _ = fmt.Fprintln(std.out, c)
			}
			if len(gate.Breaking(changes)) > 0 {
				return errReported
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "folder of the catalogue to compare with; empty: that of this release")
	return cmd
}
