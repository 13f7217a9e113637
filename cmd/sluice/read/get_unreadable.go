package read

import (
	"context"
	"errors"
	"fmt"

	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/cmd/sluice/resource"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
	"github.com/sluicegw/sluice/graph/client"
)

// listUnreadable prints the unreadable resources.
func (g *get) listUnreadable(ctx context.Context, named bool) error {
	switch {
	case named || len(g.labels) > 0 || len(g.filters) > 0 || g.sortBy != nil || g.watch:
		return exit.Usage(errors.New("unreadable: it goes with kinds and -n or -A, and with nothing else"))
	case g.format.Form != output.FormTable && g.format.Form != output.FormName:
		return exit.Usage(fmt.Errorf("unreadable: what cannot be read has no -o %s; table and name are accepted",
			g.format.Form))
	}
	table := output.NewTable(g.std.Out, []string{"KIND", "NAMESPACE", "NAME", "REASON"})
	count := 0
	for _, t := range g.targets {
		list, err := g.client.Unreadables(ctx, t.Kind, g.remote.Scope(t.Kind, g.everywhere))
		if err != nil {
			return err
		}
		for _, u := range list {
			count++
			if g.format.Form != output.FormName {
				table.Texts(u.Kind, u.Namespace, u.Name, u.Reason)
				continue
			}
			if _, err := fmt.Fprintf(g.std.Out, "%s/%s\n",
				output.Printable(t.Kind.Singular), output.Printable(u.Name)); err != nil {
				return err
			}
		}
	}
	switch {
	case count > 0:
	case g.remote.Namespace != "" && !g.everywhere && g.nothingStored(ctx):
		_, _ = fmt.Fprintf(g.std.Err, "there is nothing%s\n", resource.InNamespace(g.remote.Namespace))
	default:
		_, _ = fmt.Fprintln(g.std.Err, "the gateway can read everything")
	}
	return table.Flush()
}

// warnUnreadable prints how many unreadable resources a stream leaves out. It prints nothing if that cannot be found
// out.
func warnUnreadable(ctx context.Context, std terminal.Streams, c *client.Client, k client.Kind, namespace string) {
	n, err := c.UnreadableCount(ctx, k, namespace)
	if err == nil && n > 0 {
		exit.WarnUnreadable(std, &client.UnreadableError{Kind: k, Count: n})
	}
}

// nothingStored reports whether the namespace has no resources of the targets. It returns false if a kind may not be
// listed.
func (g *get) nothingStored(ctx context.Context) bool {
	for _, t := range g.targets {
		req := client.ListRequest{Kind: t.Kind, Namespace: g.remote.Scope(t.Kind, false), NamesOnly: true}
		for range g.client.List(ctx, req) {
			return false // a resource, or an error
		}
	}
	return true
}
