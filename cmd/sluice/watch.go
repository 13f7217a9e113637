package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/graph/client"
)

func watchCommand(std streams) *cobra.Command {
	var r remote
	format, after := "table", ""
	var everywhere bool
	cmd := &cobra.Command{
		Use:   "watch KIND [NAME]",
		Short: "Follow changes of resources; survives a restart of the gateway",
		Long: "Follow changes of resources, with the time and the revision of each (-o json has the cursor, too); survives a restart of the gateway.\n\n" +
			"`sluice get --watch` shows changes as `sluice get` shows resources.",
		Example: "  sluice watch networks\n  sluice watch network net-a -o json\n  sluice watch networks -A --after CURSOR",
		Args:    usage(cobra.RangeArgs(1, 2)),
		RunE: with(r.client, func(cmd *cobra.Command, c *client.Client, args []string) error {
			targets, err := readTargets(cmd.Context(), c, args)
			if err != nil {
				return err
			}
			if len(targets) != 1 || len(targets[0].names) > 1 {
				return usageError{errors.New("watch: one kind, and one name or none")}
			}
			kind := targets[0].kind
			req := client.ChangesRequest{Kind: kind, Namespace: r.scope(kind, everywhere), After: after, Snapshot: true, NamesOnly: format == "table"}
			if len(targets[0].names) == 1 {
				req.Name = targets[0].names[0]
			}
			each := withLost(func(change *client.Change) error { return printChange(std, change) })
			if format == "json" {
				p := output.NewPrinter(std.out, output.Format{Form: output.FormJSON}, output.Options{Changes: true})
				each = func(change *client.Change) error { return p.PrintChange(kind, change) }
			}
			warnUnreadable(cmd.Context(), std, c, kind, req.Namespace)
			return follow(cmd.Context(), std, c, req, each)
		}),
	}
	r.register(cmd)
	addChoice(cmd, &format, pflag.Flag{Name: "output", Shorthand: "o", Usage: "table or json (one event a line)"}, "table", "json")
	cmd.Flags().StringVar(&after, "after", "", "cursor of the last event seen; without one, the state comes first")
	cmd.Flags().BoolVarP(&everywhere, "all-namespaces", "A", false, "all namespaces")
	return cmd
}

// reportLost tells the user that a connection was lost, or refused for now.
func reportLost(std streams) func(cause error) {
	return func(cause error) {
		what := "the connection was lost"
		if code(cause) == "LIMIT_EXCEEDED" {
			what = "the gateway refused the stream for now"
		}
		_, _ = fmt.Fprintf(std.err, "sluice: %s (%s); connecting again\n", what, printable(cause.Error()))
	}
}

// follow hands events on until the user stops it.
func follow(ctx context.Context, std streams, c *client.Client, req client.ChangesRequest, each func(*client.Change) error) error {
	resets := 0
	req.Lost = reportLost(std)
	for change, err := range c.Changes(ctx, req) {
		if errors.Is(err, context.Canceled) {
			return nil
		}
		if err != nil {
			explain(std, "sluice", err)
			return errReported
		}
		if change.Type == "RESET" {
			if resets++; resets > 1 || req.After != "" {
				_, _ = fmt.Fprintln(std.err, "sluice: the gateway no longer has the changes since the last one shown; starting over from the present state")
			}
		}
		if err := each(change); err != nil {
			return err
		}
	}
	return nil
}

// withLost passes changes to each. A resource that the caller may see no longer gets the metadata that it had when it was
// seen last.
func withLost(each func(*client.Change) error) func(*client.Change) error {
	seen := map[string]*client.Resource{} // by their ids
	return func(c *client.Change) error {
		switch {
		case c.Type == "RESET":
			clear(seen)
		case c.Type == "DELETED":
			if c.Resource == nil {
				c.Resource = seen[c.ResourceID]
			}
			delete(seen, c.ResourceID)
		case c.Resource != nil:
			seen[c.ResourceID] = &client.Resource{Kind: c.Resource.Kind, Metadata: c.Resource.Metadata}
		}
		return each(c)
	}
}

// printChange prints a change in one line.
func printChange(std streams, c *client.Change) error {
	if c.Resource == nil {
		return nil
	}
	_, err := fmt.Fprintf(std.out, "%s  %-9s  %-20s  %-30s  %s\n", time.Now().Format(time.TimeOnly), cell(c.Type), cell(orEmpty(c.Resource.Metadata.Namespace)), cell(c.Resource.Metadata.Name), cell(c.Revision))
	return err
}
