package document

import (
	"context"
	"fmt"

	"github.com/aymanbagabas/go-udiff"

	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/input"
	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/cmd/sluice/resource"
	"github.com/sluicegw/sluice/graph/client"
)

// Comparison is the result of comparing a document with the stored resource.
type Comparison struct {
	Key resource.Key
	// stored is the manifest of the stored resource; empty if there is none. would is the manifest that an apply of the
	// document would store.
	stored, would string
	// Revision is the revision of the stored resource; empty if there is none.
	Revision string
	// Outcome is the outcome that an apply would have: CREATED, UPDATED or UNCHANGED.
	Outcome string
	// Stale is the error with which an apply would fail unless --ignore-revision is set; nil if the apply would
	// succeed.
	Stale error
}

// comparer compares documents with the stored resources.
type comparer struct {
	client *client.Client
	kinds  []client.Kind
	// namespace is the namespace of documents without one.
	namespace string
	manager   FieldManager
}

func NewComparer(ctx context.Context, c *client.Client, namespace string, manager FieldManager) (*comparer, error) {
	kinds, err := c.Kinds(ctx)
	return &comparer{client: c, kinds: kinds, namespace: namespace, manager: manager}, err
}

// Compare asks the gateway what an apply of a document would do. If the document is based on an older revision, it
// compares nevertheless and sets Stale.
func (c *comparer) Compare(ctx context.Context, d input.Document) (*Comparison, error) {
	req := client.ApplyRequest{
		Manifest:     d.Text,
		Namespace:    c.namespace,
		FieldManager: (*string)(&c.manager),
		DryRun:       true,
	}
	out := &Comparison{}
	would, err := c.client.Apply(ctx, req)
	if d.Revision != "" && (exit.APICode(err) == "CONFLICT" || exit.APICode(err) == "NOT_FOUND") {
		out.Stale, req.IgnoreRevision = err, true
		would, err = c.client.Apply(ctx, req)
	}
	if err != nil {
		return nil, err
	}
	if would.Preview == nil {
		return nil, fmt.Errorf("%s: the gateway does not show what would be stored", d)
	}
	out.Key = resource.KeyOfApplied(would)
	out.would, out.Outcome = would.Preview.Manifest, would.Outcome
	kind, err := client.FindKind(c.kinds, out.Key.Kind)
	if err != nil {
		return nil, err
	}
	stored, err := c.client.Get(ctx, kind, out.Key.Namespace, out.Key.Name, client.YAML)
	if err == nil && stored != nil {
		out.stored, out.Revision = stored.Manifest, stored.Metadata.Revision
	}
	return out, err
}

// Unified returns the unified diff of both manifests; empty if they are equal. Control characters are escaped for
// terminals. stored and would are the titles of the two sides.
func (c *Comparison) Unified(stored, would string) string {
	return output.PrintableLines(udiff.Unified(stored, would, c.stored, c.would))
}
