package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/sluicegw/sluice/cmd/sluice/input"
	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/graph/client"
)

// comparison is a document beside the stored resource.
type comparison struct {
	key key
	// stored is the manifest of the resource, empty if it does not exist; would is the manifest after an apply.
	stored, would string
	// revision of the stored resource; empty if it does not exist.
	revision string
	// outcome of an apply: CREATED, UPDATED or UNCHANGED.
	outcome string
	// stale is why the document would not be applied without --ignore-revision; nil if it would.
	stale error
}

// comparer compares documents with the stored resources.
type comparer struct {
	client *client.Client
	kinds  []client.Kind
	// namespace of documents that name none.
	namespace string
	manager   fieldManager
}

func newComparer(ctx context.Context, c *client.Client, namespace string, manager fieldManager) (*comparer, error) {
	kinds, err := c.Kinds(ctx)
	return &comparer{client: c, kinds: kinds, namespace: namespace, manager: manager}, err
}

// compare asks the gateway what an apply would do. If the document is based on an older revision, it compares all the
// same and notes that as stale.
func (c *comparer) compare(ctx context.Context, d input.Document) (*comparison, error) {
	req := client.ApplyRequest{Manifest: d.Text, Namespace: c.namespace, FieldManager: (*string)(&c.manager), DryRun: true}
	out := &comparison{}
	would, err := c.client.Apply(ctx, req)
	if d.Revision != "" && (code(err) == "CONFLICT" || code(err) == "NOT_FOUND") {
		out.stale, req.IgnoreRevision = err, true
		would, err = c.client.Apply(ctx, req)
	}
	if err != nil {
		return nil, err
	}
	if would.Preview == nil {
		return nil, fmt.Errorf("%s: the gateway does not show what would be stored", d)
	}
	out.key = outcomeOf(would, true).key
	out.would, out.outcome = would.Preview.Manifest, would.Outcome
	kind, err := client.FindKind(c.kinds, out.key.kind)
	if err != nil {
		return nil, err
	}
	stored, err := c.client.Get(ctx, kind, out.key.namespace, out.key.name, client.YAML)
	if err == nil && stored != nil {
		out.stored, out.revision = stored.Manifest, stored.Metadata.Revision
	}
	return out, err
}

// unified returns the unified diff, safe for a terminal; it is empty if both are equal.
func (c *comparison) unified(stored, would string) string {
	return output.PrintableLines(udiff.Unified(stored, would, c.stored, c.would))
}

// maxSides is the most lines of both sides that a conflict shows.
const maxSides = 60

// showSides shows both sides of a conflict: the stored resource and the document.
func (a *application) showSides(ctx context.Context, d input.Document) {
	comparing, err := newComparer(ctx, a.client, a.namespace, a.manager)
	if err != nil {
		return // the conflict itself has been told
	}
	c, err := comparing.compare(ctx, d)
	if err != nil {
		return
	}
	based := d.Where()
	if d.Revision != "" {
		based += ", based on revision " + d.Revision
	}
	text := c.unified("stored now, revision "+c.revision, based)
	if lines := strings.SplitAfter(text, "\n"); len(lines) > maxSides {
		text = strings.Join(lines[:maxSides], "") + fmt.Sprintf("... and %d more lines; sluice diff -f %s shows all\n", len(lines)-maxSides, printable(d.File))
	}
	switch {
	case text == "" && c.outcome == "UNCHANGED":
		text = "what is stored now says the same as the file\n"
	case text == "":
		text = "what is stored now differs from the file in write-only fields, which are not shown\n"
	}
	_, _ = fmt.Fprintf(a.std.err, "%ssluice apply --ignore-revision writes the file over what is stored; sluice get reads it again\n", text)
}
