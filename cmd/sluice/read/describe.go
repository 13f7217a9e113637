package read

import (
	"context"
	"fmt"
	"time"

	"github.com/aymanbagabas/go-udiff"
	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/command"
	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/cmd/sluice/remote"
	"github.com/sluicegw/sluice/cmd/sluice/resource"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
	"github.com/sluicegw/sluice/graph/client"
)

func DescribeCommand(std terminal.Streams) *cobra.Command {
	var r remote.Flags
	var watch bool
	cmd := &cobra.Command{
		Use:   "describe KIND NAME | KIND/NAME",
		Short: "Show all of a resource, for people",
		Long: "Show all of a resource, for people: metadata, spec, status, conditions with their reasons, what it refers to and\n" +
			"what refers to it. With --watch, go on and show what each change changes.",
		Example: "  sluice describe network net-a\n  sluice describe net/net-a --watch",
		Args:    command.Args(1, 2),
		RunE: remote.With(r.Client, func(cmd *cobra.Command, c *client.Client, args []string) error {
			s, err := resource.ReadRef(cmd.Context(), c, r.Namespace, args)
			if err != nil {
				return err
			}
			d := describe{std: std, client: c, Ref: s}
			was, err := d.run(cmd.Context())
			if err != nil || !watch {
				return err
			}
			return d.watch(cmd.Context(), was)
		}),
	}
	r.Register(cmd)
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "then print changes as they happen")
	return cmd
}

// describe is the state of the command describe.
type describe struct {
	std    terminal.Streams
	client *client.Client
	resource.Ref
}

// run prints the resource and returns it.
func (d *describe) run(ctx context.Context) (*client.Resource, error) {
	res, err := resource.GetExisting(ctx, d.client, d.Ref, "")
	if err != nil {
		return nil, err
	}
	around, err := d.client.Tree(ctx, client.TreeRequest{ID: res.ID, Depth: 1, Blockers: 100})
	if err == nil && around == nil {
		err = d.Absent() // it was deleted in the meantime
	}
	if err != nil {
		return nil, err
	}
	return res, output.Describe(d.std.Out, output.Description{
		Kind: d.Kind, Resource: res, Around: around, Now: time.Now(), Colours: terminal.Coloured(d.std.Out),
	})
}

// watch prints the changes of the resource. was is its state that was printed before.
func (d *describe) watch(ctx context.Context, was *client.Resource) error {
	req := client.ChangesRequest{Kind: d.Kind, Namespace: d.Namespace, Name: d.Name, Snapshot: true}
	revision := was.Metadata.Revision
	before, err := output.YAML(d.Kind, was)
	if err != nil {
		return err
	}
	return follow(ctx, d.std, d.client, req, withLost(func(c *client.Change) error {
		if c.Resource == nil || c.Revision == revision {
			return nil
		}
		now, err := output.YAML(d.Kind, c.Resource)
		if err != nil {
			return err
		}
		event := c.Type
		if event == "SNAPSHOT" {
			event = "MODIFIED" // between what was shown and the beginning of the stream
		}
		_, _ = fmt.Fprintf(d.std.Out, "\n%s  %s\n", time.Now().Format(time.TimeOnly), event)
		if c.Type != "DELETED" {
			_, _ = fmt.Fprint(
				d.std.Out,
				output.PrintableLines(udiff.Unified(revision, c.Revision, string(before), string(now))),
			)
		}
		before, revision = now, c.Revision
		return nil
	}))
}
