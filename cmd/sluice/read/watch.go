package read

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sluicegw/sluice/cmd/sluice/command"
	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/cmd/sluice/remote"
	"github.com/sluicegw/sluice/cmd/sluice/resource"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
	"github.com/sluicegw/sluice/graph/client"
)

func WatchCommand(std terminal.Streams) *cobra.Command {
	var r remote.Flags
	format, after := "table", ""
	var everywhere bool
	cmd := &cobra.Command{
		Use:   "watch KIND [NAME]",
		Short: "Follow changes of resources; survives a restart of the gateway",
		Long: "Follow changes of resources, with the time and the revision of each (-o json has the cursor, too); survives a restart of the gateway.\n\n" +
			"`sluice get --watch` shows changes as `sluice get` shows resources.",
		Example: "  sluice watch networks\n  sluice watch network net-a -o json\n  sluice watch networks -A --after CURSOR",
		Args:    command.Args(1, 2),
		RunE: remote.With(r.Client, func(cmd *cobra.Command, c *client.Client, args []string) error {
			targets, err := resource.ReadTargets(cmd.Context(), c, args)
			if err != nil {
				return err
			}
			if len(targets) != 1 || len(targets[0].Names) > 1 {
				return exit.Usage(errors.New("watch: one kind, and one name or none"))
			}
			kind := targets[0].Kind
			req := client.ChangesRequest{
				Kind:      kind,
				Namespace: r.Scope(kind, everywhere),
				After:     after,
				Snapshot:  true,
				NamesOnly: format == "table",
			}
			if len(targets[0].Names) == 1 {
				req.Name = targets[0].Names[0]
			}
			each := withLost(func(change *client.Change) error { return printChange(std, change) })
			if format == "json" {
				p := output.NewPrinter(std.Out, output.Format{Form: output.FormJSON}, output.Options{Changes: true})
				each = func(change *client.Change) error { return p.PrintChange(kind, change) }
			}
			warnUnreadable(cmd.Context(), std, c, kind, req.Namespace)
			return follow(cmd.Context(), std, c, req, each)
		}),
	}
	r.Register(cmd)
	command.AddEnumFlag(
		cmd,
		&format,
		pflag.Flag{Name: "output", Shorthand: "o", Usage: "table or json (one event a line)"},
		"table",
		"json",
	)
	cmd.Flags().StringVar(&after, "after", "", "cursor of the last event seen; without one, the state comes first")
	cmd.Flags().BoolVarP(&everywhere, "all-namespaces", "A", false, "all namespaces")
	return cmd
}

// printChange prints a change in one line.
func printChange(std terminal.Streams, c *client.Change) error {
	if c.Resource == nil {
		return nil
	}
	_, err := fmt.Fprintf(
		std.Out,
		"%s  %-9s  %-20s  %-30s  %s\n",
		time.Now().Format(time.TimeOnly),
		output.Cell(c.Type),
		output.Cell(output.OrEmpty(c.Resource.Metadata.Namespace)),
		output.Cell(c.Resource.Metadata.Name),
		output.Cell(c.Revision),
	)
	return err
}
