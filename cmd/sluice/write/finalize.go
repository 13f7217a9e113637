package write

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/cmd/sluice/remote"
	"github.com/sluicegw/sluice/cmd/sluice/resource"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
	"github.com/sluicegw/sluice/graph/client"
)

func FinalizeCommand(std terminal.Streams) *cobra.Command {
	var r remote.Flags
	var add, remove []string
	m := modification{
		writing:    writing{std: std},
		unreadable: "its finalizers can be changed by a gateway whose catalogue reads it, or after sluice apply has replaced it",
	}
	cmd := &cobra.Command{
		Use:   "finalize KIND NAME... | KIND/NAME...  (--add FINALIZER | --remove FINALIZER)...",
		Short: "Add and remove finalizers of resources",
		Long: "Add and remove finalizers of resources: a resource whose deletion is requested goes when the last one is removed.\n" +
			"Each should be removed by who added it; once the deletion is requested, none can be added.",
		Example: "  sluice finalize network net-a --add example.org/cloud\n  sluice finalize network/net-a --remove example.org/cloud",
		RunE: remote.With(r.Writer, func(cmd *cobra.Command, c *client.Client, args []string) error {
			m.client = c
			if len(add)+len(remove) == 0 {
				return exit.Usage(errors.New("finalize: say what to change with --add FINALIZER and --remove FINALIZER"))
			}
			list, err := resource.ReadRefs(cmd.Context(), m.client, r.Namespace, args)
			if err != nil {
				return err
			}
			m.write = func(ctx context.Context, s resource.Ref, was *client.Resource, revision string) (writeResult, error) {
				return m.finalize(ctx, was, client.MetadataPatch{
					Kind:             s.Kind,
					Namespace:        s.Namespace,
					Name:             s.Name,
					ExpectedRevision: revision,
					AddFinalizers:    add,
					RemoveFinalizers: remove,
					DryRun:           bool(m.dry),
				})
			}
			return m.all(cmd.Context(), list, false)
		}),
	}
	r.Register(cmd)
	m.register(cmd)
	cmd.Flags().StringArrayVar(&add, "add", nil, "finalizer to add; may be repeated")
	cmd.Flags().StringArrayVar(&remove, "remove", nil, "finalizer to remove; may be repeated")
	return cmd
}

// finalize changes the finalizers of a resource that was read.
func (m *modification) finalize(
	ctx context.Context,
	was *client.Resource,
	patch client.MetadataPatch,
) (writeResult, error) {
	next := slices.DeleteFunc(slices.Clone(was.Metadata.Finalizers), func(name string) bool {
		return slices.Contains(patch.RemoveFinalizers, name)
	})
	for _, name := range patch.AddFinalizers {
		if !slices.Contains(next, name) {
			next = append(next, name)
		}
	}
	if slices.Equal(next, was.Metadata.Finalizers) {
		return writeResult{done: "UNCHANGED", revision: was.Metadata.Revision}, nil
	}
	revision, err := m.client.PatchMetadata(ctx, patch)
	return writeResult{
		done:     "UPDATED",
		revision: revision,
		note:     ": finalizers " + output.Printable(cmp.Or(strings.Join(next, ", "), "none")),
	}, err
}
