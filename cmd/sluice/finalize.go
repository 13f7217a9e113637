package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/graph/client"
	"github.com/sluicegw/sluice/internal/wait"
)

func finalizeCommand(std streams) *cobra.Command {
	var r remote
	f := finalizers{std: std}
	cmd := &cobra.Command{
		Use:   "finalize KIND NAME... | KIND/NAME...  (--add FINALIZER | --remove FINALIZER)...",
		Short: "Add and remove finalizers of resources",
		Long: "Add and remove finalizers of resources: a resource whose deletion is requested goes when the last one is removed.\n" +
			"Each should be removed by who added it; once the deletion is requested, none can be added.",
		Example: "  sluice finalize network net-a --add example.org/cloud\n  sluice finalize network/net-a --remove example.org/cloud",
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if f.client, err = r.writer(cmd); err != nil {
				return err
			}
			if len(f.add)+len(f.remove) == 0 {
				return usageError{errors.New("finalize: say what to change with --add FINALIZER and --remove FINALIZER")}
			}
			list, err := subjects(cmd.Context(), f.client, r.namespace, args)
			if err != nil {
				return err
			}
			var failed tally
			for i, s := range list {
				err := f.one(cmd.Context(), s)
				if err != nil {
					failed.count(err)
					explainOf(std, s.kind.Name, s.name, err)
				}
				if failed.halted(cmd.Context(), std, err, len(list)-i-1) {
					break
				}
			}
			return failed.err()
		},
	}
	r.register(cmd)
	f.dry.register(cmd)
	f.form.register(cmd)
	cmd.Flags().StringArrayVar(&f.add, "add", nil, "finalizer to add; may be repeated")
	cmd.Flags().StringArrayVar(&f.remove, "remove", nil, "finalizer to remove; may be repeated")
	return cmd
}

// finalizers is one run of the command.
type finalizers struct {
	std         streams
	client      *client.Client
	dry         dryRun
	form        outcomeForm
	add, remove []string
}

// one changes the finalizers of a resource, anew if somebody else is faster.
func (f *finalizers) one(ctx context.Context, s subject) error {
	for try := 1; ; try++ {
		res, err := existing(ctx, f.client, s, "")
		if err != nil {
			return readError(ctx, err)
		}
		has := res.Metadata.Finalizers
		next := slices.DeleteFunc(slices.Clone(has), func(name string) bool { return slices.Contains(f.remove, name) })
		for _, name := range f.add {
			if !slices.Contains(next, name) {
				next = append(next, name)
			}
		}
		if slices.Equal(next, has) {
			f.form.print(f.std, outcome{key: keyOf(res), done: "UNCHANGED", uid: res.Metadata.UID, revision: res.Metadata.Revision, dry: f.dry})
			return nil
		}
		revision, err := f.client.PatchMetadata(ctx, client.MetadataPatch{
			Kind: s.kind, Namespace: s.namespace, Name: s.name, ExpectedRevision: res.Metadata.Revision, AddFinalizers: f.add, RemoveFinalizers: f.remove, DryRun: bool(f.dry),
		})
		if outrun(err) && try < maxTries && wait.For(ctx, rand.N(maxPause)) {
			continue
		}
		if err != nil {
			return writeError(ctx, err, f.dry)
		}
		text := strings.Join(next, ", ")
		if text == "" {
			text = "none"
		}
		f.form.print(f.std, outcome{key: keyOf(res), done: "UPDATED", uid: res.Metadata.UID, revision: revision, dry: f.dry, note: ": finalizers " + printable(text)})
		return nil
	}
}
