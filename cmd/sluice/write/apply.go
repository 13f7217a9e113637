// Package write has the commands that change resources. Each command has a file.
package write

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/command"
	"github.com/sluicegw/sluice/cmd/sluice/document"
	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/input"
	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/cmd/sluice/remote"
	"github.com/sluicegw/sluice/cmd/sluice/resource"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
	"github.com/sluicegw/sluice/graph/client"
)

func ApplyCommand(std terminal.Streams) *cobra.Command {
	a := application{writing: writing{std: std}}
	cmd := a.command(&cobra.Command{
		Use:   "apply -f FILE|FOLDER|-",
		Short: "Create or replace resources from manifests",
		Long: `Create or replace resources from manifests, in any order.

A document that fails does not stop the others. A document with metadata.revision, as
sluice get -o yaml prints it, is applied only if nobody has changed the resource since.

Labels and annotations that the field manager's last manifest had and this one does not have are
removed. Those that others have set stay.`,
		Example: `  sluice apply -f network.yaml
  sluice apply -R -f ./manifests --dry-run
  sluice apply -f ./manifests --prune -l team=web
  sluice get network net-a -o yaml | sed s/1500/9000/ | sluice apply -f -`,
	})
	a.prune.register(cmd)
	cmd.Flags().BoolVar(
		&a.ignoreRevision,
		"ignore-revision",
		false,
		"apply a document although the resource has changed since the revision that it is based on, or is gone",
	)
	return cmd
}

// command adds the flags and the RunE of a command that applies documents.
func (a *application) command(cmd *cobra.Command) *cobra.Command {
	var r remote.Flags
	var files document.Flags
	cmd.Args = command.Args(0, 0)
	cmd.RunE = remote.With(r.Writer, func(cmd *cobra.Command, c *client.Client, _ []string) error {
		if err := a.prune.check(a.std, files.Files, bool(a.dry)); err != nil {
			return err
		}
		docs, err := files.Read(cmd.Context(), a.std, r.Namespace)
		if err != nil || len(docs) == 0 {
			return err
		}
		a.client, a.namespace = c, r.Namespace
		return a.run(cmd.Context(), docs)
	})
	r.Register(cmd)
	files.Register(cmd)
	a.writing.register(cmd)
	a.manager.Register(cmd)
	return cmd
}

// application applies documents one after another.
type application struct {
	writing
	createOnly, ignoreRevision bool
	prune                      prune
	manager                    document.FieldManager
	// count maps each outcome to the number of documents with it.
	count map[string]int
	// stored are the keys of the resources that were stored.
	stored []resource.Key
	waits  waits
}

// The outcomes that the API does not have.
const (
	failed  = "FAILED"
	notSent = "NOT SENT"
	pruned  = "PRUNED"
)

// run applies all documents, prunes, and prints a summary.
func (a *application) run(ctx context.Context, docs []input.Document) error {
	a.count = map[string]int{}
	a.waits.collect = len(docs) > 1
	var unable error
	for i, d := range docs {
		if ctx.Err() != nil || unable != nil {
			a.count[notSent] = len(docs) - i
			break
		}
		if len(docs) > 1 {
			a.std.Show(fmt.Sprintf("applying %d of %d ...", i+1, len(docs)))
		}
		out, err := a.client.Apply(ctx, client.ApplyRequest{
			Manifest:       d.Text,
			Namespace:      a.namespace,
			CreateOnly:     a.createOnly,
			IgnoreRevision: a.ignoreRevision,
			FieldManager:   (*string)(&a.manager),
			DryRun:         bool(a.dry),
		})
		if err != nil {
			a.count[failed]++
			err = writeError(ctx, err, a.dry)
			document.Explain(a.std, d, err)
			if exit.APICode(err) == "CONFLICT" {
				a.showSides(ctx, d)
			}
			if !errors.As(err, new(client.Errors)) || exit.Unauthenticated(err) {
				unable = err // the other documents would fail in the same way
			}
			continue
		}
		a.count[out.Outcome]++
		a.report(d, out)
	}
	err := a.finish(ctx, docs)
	if len(docs) > 1 || a.prune.want {
		_, _ = fmt.Fprintln(a.std.Err, a.summary(len(docs)))
	}
	a.waits.print(a.std.Err, a.stored)
	return err
}

// finish prunes, if all documents were applied.
func (a *application) finish(ctx context.Context, docs []input.Document) error {
	bad := a.count[failed]+a.count[notSent] > 0
	switch {
	case bad && a.prune.want:
		_, _ = fmt.Fprintln(a.std.Err, "sluice: nothing was pruned, since not every document was applied")
		return exit.ErrReported
	case bad:
		return exit.ErrReported
	case !a.prune.want:
		return nil
	case len(a.stored) < len(docs):
		return errors.New("prune: the gateway did not say which resources the documents are of; nothing was pruned")
	}
	n, err := a.prune.run(ctx, a)
	a.count[pruned] = n
	return err
}

// summary returns a line about all documents.
func (a *application) summary(documents int) string {
	var parts []string
	for _, name := range []string{"CREATED", "UPDATED", "UNCHANGED", failed, notSent, pruned} {
		if n := a.count[name]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, strings.ToLower(name)))
		}
	}
	return fmt.Sprintf("%s: %s%s", output.Plural(documents, "document"), strings.Join(parts, ", "), a.dry.Mark())
}

// report prints the outcome of a document, and adds its resource to stored.
func (a *application) report(d input.Document, out *client.Applied) {
	o := outcomeOf(out, a.dry)
	known := o.Key != resource.Key{}
	for _, w := range out.Warnings {
		if w.Code == client.Waiting && known && a.waits.collect {
			a.waits.add(o.Key, w.Message)
			continue
		}
		if w.Code == client.NotReadable {
			o.note = ", not readable for you"
			o.Key = resource.Key{Kind: d.Kind, Namespace: cmp.Or(d.Namespace, a.namespace), Name: d.Name}
			continue
		}
		_, _ = fmt.Fprintf(a.std.Err, "%s: warning: %s\n",
			output.Printable(d.At(document.FieldPath(w.Field))), output.Printable(w.Message))
	}
	switch {
	case known:
		a.stored = append(a.stored, o.Key)
	case o.Key == resource.Key{}:
		o.what = d.Where()
	}
	a.form.print(a.std, o)
}
