package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/input"
	"github.com/sluicegw/sluice/graph/client"
)

func applyCommand(std streams) *cobra.Command {
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
	cmd.Flags().BoolVar(&a.ignoreRevision, "ignore-revision", false, "apply a document although the resource has changed since the revision that it is based on, or is gone")
	return cmd
}

func createCommand(std streams) *cobra.Command {
	a := application{writing: writing{std: std}, createOnly: true}
	return a.command(&cobra.Command{
		Use:   "create -f FILE|FOLDER|-",
		Short: "Create resources from manifests; existing ones are left alone",
		Example: `  sluice create -f network.yaml
  sluice create -f network.yaml --dry-run=server`,
	})
}

// command completes a command that sends documents.
func (a *application) command(cmd *cobra.Command) *cobra.Command {
	var r remote
	var files documents
	cmd.Args = usage(cobra.NoArgs)
	cmd.RunE = with(r.writer, func(cmd *cobra.Command, c *client.Client, _ []string) error {
		if err := a.prune.check(a.std, files.files, bool(a.dry)); err != nil {
			return err
		}
		docs, err := files.read(cmd.Context(), a.std, r.namespace)
		if err != nil || len(docs) == 0 {
			return err
		}
		a.client, a.namespace = c, r.namespace
		return a.run(cmd.Context(), docs)
	})
	r.register(cmd)
	files.register(cmd)
	a.writing.register(cmd)
	a.manager.register(cmd)
	return cmd
}

// fieldManager owns the labels and annotations of the manifests that are applied.
type fieldManager string

func (m *fieldManager) register(cmd *cobra.Command) {
	cmd.Flags().StringVar((*string)(m), "field-manager", "sluice", "who owns the labels and annotations of the manifests; empty: nobody, and they replace all")
	completeFlag(cmd, "field-manager", cobra.NoFileCompletions)
}

// application sends documents one by one.
type application struct {
	writing
	createOnly, ignoreRevision bool
	prune                      prune
	manager                    fieldManager
	// count is how many documents had each outcome.
	count map[string]int
	// stored are the resources that the documents are of.
	stored []key
	waits  waits
}

// key names one resource.
type key struct{ kind, namespace, name string }

func (k key) String() string {
	if k.namespace == "" {
		return k.kind + " " + k.name
	}
	return k.kind + " " + k.namespace + "/" + k.name
}

func keyOf(r *client.Resource) key {
	return key{r.Kind, orEmpty(r.Metadata.Namespace), r.Metadata.Name}
}

// Outcomes that the API does not have.
const (
	failed  = "FAILED"
	notSent = "NOT SENT"
	pruned  = "PRUNED"
)

// run applies all documents, then prunes, then sums up.
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
			a.std.show(fmt.Sprintf("applying %d of %d ...", i+1, len(docs)))
		}
		out, err := a.client.Apply(ctx, client.ApplyRequest{Manifest: d.Text, Namespace: a.namespace, CreateOnly: a.createOnly, IgnoreRevision: a.ignoreRevision, FieldManager: (*string)(&a.manager), DryRun: bool(a.dry)})
		if err != nil {
			a.count[failed]++
			err = writeError(ctx, err, a.dry)
			explainAt(a.std, d, err)
			if code(err) == "CONFLICT" {
				a.showSides(ctx, d)
			}
			if !errors.As(err, new(client.Errors)) || unauthenticated(err) {
				unable = err // nobody is there to answer the others, or the gateway would refuse them alike
			}
			continue
		}
		a.count[out.Outcome]++
		a.report(d, out)
	}
	err := a.finish(ctx, docs)
	if len(docs) > 1 || a.prune.want {
		_, _ = fmt.Fprintln(a.std.err, a.summary(len(docs)))
	}
	a.waits.print(a.std.err, a.stored)
	return err
}

// finish prunes if every document was applied.
func (a *application) finish(ctx context.Context, docs []input.Document) error {
	bad := a.count[failed]+a.count[notSent] > 0
	switch {
	case bad && a.prune.want:
		_, _ = fmt.Fprintln(a.std.err, "sluice: nothing was pruned, since not every document was applied")
		return errReported
	case bad:
		return errReported
	case !a.prune.want:
		return nil
	case len(a.stored) < len(docs):
		return errors.New("prune: the gateway did not say which resources the documents are of; nothing was pruned")
	}
	n, err := a.prune.run(ctx, a)
	a.count[pruned] = n
	return err
}

// summary is one line about all documents.
func (a *application) summary(documents int) string {
	var parts []string
	for _, name := range []string{"CREATED", "UPDATED", "UNCHANGED", failed, notSent, pruned} {
		if n := a.count[name]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, strings.ToLower(name)))
		}
	}
	return fmt.Sprintf("%s: %s%s", plural(documents, "document"), strings.Join(parts, ", "), a.dry.mark())
}

// report prints what became of a document, and notes its resource as stored.
func (a *application) report(d input.Document, out *client.Applied) {
	o := outcomeOf(out, a.dry)
	known := o.key != key{}
	for _, w := range out.Warnings {
		if w.Code == client.Waiting && known && a.waits.collect {
			a.waits.add(o.key, w.Message)
			continue
		}
		if w.Code == client.NotReadable {
			o.note = ", not readable for you"
			o.key = key{d.Kind, cmp.Or(d.Namespace, a.namespace), d.Name}
			continue
		}
		_, _ = fmt.Fprintf(a.std.err, "%s: warning: %s\n", printable(d.At(inDocument(w.Field))), printable(w.Message))
	}
	switch {
	case known:
		a.stored = append(a.stored, o.key)
	case o.key == key{}:
		o.what = d.Where()
	}
	a.form.print(a.std, o)
}
