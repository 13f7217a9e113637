package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/graph/client"
)

func watchCommand(std streams) *cobra.Command {
	var r remote
	var output, after string
	var everywhere bool
	cmd := &cobra.Command{
		Use:   "watch KIND [NAME]",
		Short: "Follow changes of resources; survives a restart of the gateway",
		Args:  usage(cobra.RangeArgs(1, 2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := r.client(cmd)
			if err != nil {
				return err
			}
			if output != "table" && output != "json" {
				return usageError{fmt.Errorf("output: %q; accepted are table, json", output)}
			}
			kind, err := c.Kind(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			req := client.ChangesRequest{Kind: kind, Namespace: r.scope(kind, everywhere), After: after, Snapshot: true, Format: client.JSON}
			if len(args) == 2 {
				req.Name = args[1]
			}
			return follow(cmd.Context(), std, c, req, output)
		},
	}
	r.register(cmd)
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table or json (one event a line)")
	cmd.Flags().StringVar(&after, "after", "", "cursor of the event seen last; the state comes first without one")
	cmd.Flags().BoolVarP(&everywhere, "all-namespaces", "A", false, "all namespaces")
	return cmd
}

// follow prints events until the user stops it.
func follow(ctx context.Context, std streams, c *client.Client, req client.ChangesRequest, output string) error {
	resets := 0
	req.Lost = func(cause error) {
		_, _ = fmt.Fprintf(std.err, "sluice: the connection was lost (%s); connecting again\n", printable(cause.Error()))
	}
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
		if err := printChange(std, change, output); err != nil {
			return err
		}
	}
	return nil
}

func printChange(std streams, c *client.Change, output string) error {
	if output == "json" {
		line := map[string]any{"type": c.Type}
		if c.Cursor != "" {
			line["cursor"] = c.Cursor
		}
		if c.Resource != nil {
			line["revision"], line["resource"] = c.Revision, json.RawMessage(printableJSON(c.Resource.Manifest))
		}
		return json.NewEncoder(std.out).Encode(line)
	}
	if c.Resource == nil {
		return nil
	}
	ns := ""
	if c.Resource.Metadata.Namespace != nil {
		ns = *c.Resource.Metadata.Namespace
	}
	_, err := fmt.Fprintf(std.out, "%s  %-9s  %-20s  %-30s  %s\n", time.Now().Format(time.TimeOnly), cell(c.Type), cell(ns), cell(c.Resource.Metadata.Name), cell(c.Revision))
	return err
}
