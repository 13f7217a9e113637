package read

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/command"
	"github.com/sluicegw/sluice/cmd/sluice/document"
	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/cmd/sluice/remote"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
	"github.com/sluicegw/sluice/graph/client"
)

func DiffCommand(std terminal.Streams) *cobra.Command {
	var r remote.Flags
	var files document.Flags
	var manager document.FieldManager
	cmd := &cobra.Command{
		Use:   "diff -f FILE|FOLDER|-",
		Short: "Show what sluice apply would change",
		Long: `Show what sluice apply would change, as a unified diff: the gateway says what would be stored
and writes nothing. The exit code is 0 if nothing would change, 1 if something would, and 2
if that cannot be said.`,
		Example: `  sluice diff -f network.yaml
  sluice diff -R -f ./manifests && echo up to date`,
		Args: command.Args(0, 0),
		RunE: remote.With(r.Writer, func(cmd *cobra.Command, c *client.Client, _ []string) error {
			docs, err := files.Read(cmd.Context(), std, r.Namespace)
			if err != nil {
				return exit.Usage(err)
			}
			differs, unknown := false, false
			comparing, err := document.NewComparer(cmd.Context(), c, r.Namespace, manager)
			if err != nil {
				return exit.Usage(err)
			}
			for _, d := range docs {
				if cmd.Context().Err() != nil {
					return exit.Usage(cmd.Context().Err())
				}
				cmp, err := comparing.Compare(cmd.Context(), d)
				if err != nil {
					document.Explain(std, d, err)
					unknown = true
					continue
				}
				if cmp.Stale != nil {
					document.Explain(std, d, cmp.Stale)
				}
				differs = show(std, cmp, d.Where()) || differs
			}
			switch {
			case unknown:
				return exit.Usage(exit.ErrReported)
			case differs:
				return exit.ErrReported
			}
			return nil
		}),
	}
	r.Register(cmd)
	files.Register(cmd)
	manager.Register(cmd)
	return cmd
}

// show prints a comparison, and reports whether there are differences.
func show(std terminal.Streams, c *document.Comparison, where string) bool {
	text := c.Unified(c.Key.String()+" (stored)", c.Key.String()+" ("+where+")")
	if text == "" && c.Outcome != "UNCHANGED" {
		_, _ = fmt.Fprintf(std.Err, "%s: %s differs in write-only fields, which are not shown\n",
			output.Printable(where), output.Printable(c.Key.String()))
	}
	_, _ = fmt.Fprint(std.Out, text)
	return c.Outcome != "UNCHANGED"
}
