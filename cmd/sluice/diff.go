package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/graph/client"
)

func diffCommand(std streams) *cobra.Command {
	var r remote
	var files documents
	var manager fieldManager
	cmd := &cobra.Command{
		Use:   "diff -f FILE|FOLDER|-",
		Short: "Show what sluice apply would change",
		Long: `Show what sluice apply would change, as a unified diff: the gateway says what would be stored
and writes nothing. The exit code is 0 if nothing would change, 1 if something would, and 2
if that cannot be said.`,
		Example: `  sluice diff -f network.yaml
  sluice diff -R -f ./manifests && echo up to date`,
		Args: usage(cobra.NoArgs),
		RunE: with(r.writer, func(cmd *cobra.Command, c *client.Client, _ []string) error {
			docs, err := files.read(cmd.Context(), std, r.namespace)
			if err != nil {
				return usageError{err}
			}
			differs, unknown := false, false
			comparing, err := newComparer(cmd.Context(), c, r.namespace, manager)
			if err != nil {
				return usageError{err}
			}
			for _, d := range docs {
				if cmd.Context().Err() != nil {
					return usageError{cmd.Context().Err()}
				}
				cmp, err := comparing.compare(cmd.Context(), d)
				if err != nil {
					explainAt(std, d, err)
					unknown = true
					continue
				}
				if cmp.stale != nil {
					explainAt(std, d, cmp.stale)
				}
				differs = show(std, cmp, d.Where()) || differs
			}
			switch {
			case unknown:
				return usageError{errReported}
			case differs:
				return errReported
			}
			return nil
		}),
	}
	r.register(cmd)
	files.register(cmd)
	manager.register(cmd)
	return cmd
}

// show prints a comparison and reports whether the two differ.
func show(std streams, c *comparison, where string) bool {
	text := c.unified(c.key.String()+" (stored)", c.key.String()+" ("+where+")")
	if text == "" && c.outcome != "UNCHANGED" {
		_, _ = fmt.Fprintf(std.err, "%s: %s differs in write-only fields, which are not shown\n", printable(where), printable(c.key.String()))
	}
	_, _ = fmt.Fprint(std.out, text)
	return c.outcome != "UNCHANGED"
}
