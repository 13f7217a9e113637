package write

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/document"
	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/input"
	"github.com/sluicegw/sluice/cmd/sluice/remote"
	"github.com/sluicegw/sluice/cmd/sluice/resource"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
	"github.com/sluicegw/sluice/graph/client"
)

func DeleteCommand(std terminal.Streams) *cobra.Command {
	var r remote.Flags
	var files document.Flags
	var by selectionFlags
	d := deletion{writing: writing{std: std}}
	cmd := &cobra.Command{
		Use:   "delete KIND NAME... | KIND/NAME... | KIND -l SELECTOR | -f FILE|FOLDER|-",
		Short: "Delete resources",
		Long: `Delete resources by name, by labels or by manifest.

A resource that others rely on, or that finalizers hold, goes when nothing holds it any longer:
it is PENDING or FINALIZING until then, which cannot be cancelled. --dry-run shows what would go
at once and what holds the rest; --wait ends when all are gone.

With -l, a resource is deleted only while it has the labels: one that somebody changes meanwhile
is checked again. Manifests only name the resources; everything else in them is ignored.`,
		Example: `  sluice delete network net-a net-b
  sluice delete network net-a --wait --timeout 2m
  sluice delete network/net-a subnet/sub-a --ignore-not-found
  sluice delete networks -l team=web,stage!=prod --dry-run
  sluice delete -f network.yaml`,
		RunE: remote.With(r.Writer, func(cmd *cobra.Command, c *client.Client, args []string) error {
			d.client = c
			d.namespace = r.Namespace
			d.timeout = r.Timeout
			ctx := cmd.Context()
			switch {
			case d.wait && bool(d.dry):
				return exit.Usage(errors.New("wait: a dry run deletes nothing that could be waited for"))
			case d.wait && r.Timeout <= 0:
				return exit.Usage(errors.New("timeout: a duration over 0 is accepted, like 30s"))
			case len(files.Files) > 0 && (len(args) > 0 || len(by.selectors) > 0 || by.everywhere || d.revision != ""):
				return exit.Usage(errors.New("delete: -f goes with neither names, -l, -A nor --revision"))
			case len(files.Files) > 0:
				docs, err := files.Read(ctx, std, r.Namespace)
				if err != nil || len(docs) == 0 {
					return err
				}
				return d.end(ctx, d.documents(ctx, docs))
			}
			s, list, err := by.resources(cmd, &d.writing, args)
			switch {
			case err != nil:
				return err
			case s != nil:
				d.failed.Partial = s.partial
				return d.end(ctx, d.selected(ctx, s, list))
			}
			exit.Each(ctx, std, &d.failed, list, func(s resource.Ref) error {
				s.Revision = d.revision
				return d.one(ctx, s.Kind.Name+" "+s.Name, s)
			})
			return d.end(ctx, d.failed.Err())
		}),
	}
	r.Register(cmd)
	cmd.Flags().Lookup("timeout").Usage = "how long one request may take; with --wait also how long to wait in all"
	files.Register(cmd)
	d.writing.register(cmd)
	by.register(cmd, "delete")
	cmd.Flags().BoolVar(&d.ignoreAbsent, "ignore-not-found", false, "do not fail if a resource does not exist")
	cmd.Flags().BoolVar(&d.wait, "wait", false, "wait until what is deleted is really gone")
	cmd.Flags().StringVar(&d.revision, "revision", "", "delete only at this revision")
	return cmd
}

// deletion is the state of a command that deletes.
type deletion struct {
	writing
	ignoreAbsent bool
	// wait reports whether the command waits until all resources are deleted, at most for timeout. waiting are the
	// resources that are not deleted yet.
	wait    bool
	timeout time.Duration
	waiting []pendingDelete
	done    int
	failed  exit.Status
}

// one deletes a resource and prints the outcome or the error. what is the name of the resource for people.
func (d *deletion) one(ctx context.Context, what string, s resource.Ref) error {
	err := d.try(ctx, what, s)
	if err != nil {
		explainOf(d.std, s, err)
	}
	return err
}

// try deletes a resource and prints the outcome. what is the name of the resource for people.
func (d *deletion) try(ctx context.Context, what string, s resource.Ref) error {
	deletion, err := d.client.Delete(ctx, client.DeleteRequest{
		Kind:             s.Kind,
		Namespace:        s.Namespace,
		Name:             s.Name,
		ExpectedRevision: s.Revision,
		DryRun:           bool(d.dry),
	})
	p := pendingDelete{what: what, Ref: s, uid: deletion.UID}
	switch {
	case err == nil:
		d.report(p, deletion)
	case exit.APICode(err) == "NOT_FOUND" && d.ignoreAbsent:
		return nil
	case appliedError(err) != nil:
		d.reportUnseen(p, appliedError(err))
	default:
		return writeError(ctx, err, d.dry)
	}
	d.done++
	if d.wait && deletion.State != "DELETED" {
		d.waiting = append(d.waiting, p)
	}
	return nil
}

// documents deletes the resources of documents.
func (d *deletion) documents(ctx context.Context, docs []input.Document) error {
	kinds, err := d.client.Kinds(ctx)
	if err != nil {
		return err
	}
	exit.Each(ctx, d.std, &d.failed, docs, func(doc input.Document) error {
		kind, err := client.FindKind(kinds, doc.Kind)
		switch {
		case doc.Kind != "" && doc.Name == "":
			err = fmt.Errorf("%s: metadata.name is missing, or not a string", doc)
		case doc.Kind == "":
			err = fmt.Errorf("%s: kind is missing, or the document cannot be read", doc)
		case err != nil:
		case doc.Namespace != "" && d.namespace != "" && doc.Namespace != d.namespace:
			err = fmt.Errorf("the manifest says namespace %q and -n says %q; leave one of them out",
				doc.Namespace, d.namespace)
		}
		if err != nil {
			exit.Explain(d.std, doc.Where(), err)
			return err
		}
		return d.one(ctx, doc.String(), resource.NewRef(kind, cmp.Or(doc.Namespace, d.namespace), doc.Name))
	})
	return d.failed.Err()
}

// maxRounds is the maximum number of times that a selection is read.
const maxRounds = 5

// selected deletes the resources of a selection. It deletes each resource only at the revision at which it was
// selected. If a resource has changed, selected reads the selection again, and deletes the resource if it is still
// selected.
func (d *deletion) selected(ctx context.Context, s *selection, list []resource.Ref) error {
	for round := 1; ; round++ {
		var again []resource.Key
		for i, one := range list {
			d.std.Progress(i+1, len(list))
			err := d.try(ctx, one.Key().String(), one)
			switch {
			case err == nil, exit.APICode(err) == "NOT_FOUND":
			case conflicting(err) && round < maxRounds:
				again = append(again, one.Key())
			default:
				d.failed.Count(err)
				explainOf(d.std, one, err)
			}
			if d.failed.Halted(ctx, d.std, err, len(list)-i-1+len(again)) {
				return d.failed.Err()
			}
		}
		if len(again) == 0 {
			return d.failed.Err()
		}
		all, err := s.find(ctx)
		if err != nil {
			return err
		}
		list = slices.DeleteFunc(all, func(s resource.Ref) bool { return !slices.Contains(again, s.Key()) })
	}
}
