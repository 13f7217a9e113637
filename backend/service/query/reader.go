// Package query reads resources: by key, by reference, and as ordered pages. Its subpackages parse filters, plan reads,
// and execute the plans.
package query

import (
	"context"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/index"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/policy"
	"github.com/sluicegw/sluice/backend/service/query/filter"
	"github.com/sluicegw/sluice/backend/service/query/page"
	"github.com/sluicegw/sluice/backend/service/query/plan"
)

// Resource is a stored resource with its decoded body. The body is nil if it cannot be read.
type Resource = page.Resource

// Edge is a resource on a page.
type Edge = page.Edge

// Reader reads resources of a catalogue's kinds. It is safe for concurrent use.
type Reader struct {
	kinds      kind.Catalogue
	unreadable *kind.Unreadable
	index      *index.Index
	fetch      *page.Fetcher
	pages      *page.Scanner
	policies   *policies
	unmirrored func(*kind.Kind) map[backend.Key]string
	// declared has the declared references of each kind, by the name of the kind.
	declared map[string][]declared
}

// Config configures a [Reader].
type Config struct {
	// Store is read for kinds that are not in memory. Store, Kinds and Unreadable are required.
	Store      backend.Store
	Kinds      kind.Catalogue
	Unreadable *kind.Unreadable
	// Index is the index in memory over Store; nil if there is none.
	Index *index.Index
	// Access configures access control.
	Access access.Config
	// Policy provides the roles and bindings. It is required if access control is on.
	Policy *policy.Source
	// Unmirrored returns the resources of a kind that its service has and that cannot be mirrored, with the reasons.
	// It may be nil.
	Unmirrored func(*kind.Kind) map[backend.Key]string
}

// New returns a reader.
func New(cfg Config) *Reader {
	f := page.NewFetcher(recordedStore{cfg.Store}, cfg.Kinds, cfg.Unreadable)
	r := &Reader{
		kinds:      cfg.Kinds,
		unreadable: cfg.Unreadable,
		index:      cfg.Index,
		fetch:      f,
		pages:      page.NewScanner(f, cfg.Index),
		declared:   declaredOf(cfg.Kinds),
		policies:   new(policies),
		unmirrored: cfg.Unmirrored,
	}
	if r.unmirrored == nil {
		r.unmirrored = func(*kind.Kind) map[backend.Key]string { return nil }
	}
	r.policies.cfg = cfg.Access
	r.policies.source = cfg.Policy
	r.policies.unlimited = access.Unlimited()
	for _, k := range cfg.Kinds.All() {
		r.policies.kinds = append(r.policies.kinds, *k.Kind)
	}
	return r
}

// View returns a reader for a view of the catalogue. It shares the policy and the index with r.
func (r *Reader) View(kinds kind.Catalogue) *Reader {
	out := *r
	out.kinds = kinds
	out.declared = declaredOf(kinds)
	return &out
}

// Definitions returns the definitions of the kinds that the index keeps in memory.
func Definitions(kinds kind.Catalogue) (out []index.Definition) {
	for _, k := range kinds.All() {
		if !k.OutOfMemory {
			out = append(out, k.Definition())
		}
	}
	return out
}

// Step is a request for some resources of a kind, ordered by name. See [Reader.Step].
type Step struct {
	Kind *kind.Kind
	// Namespace is the namespace to read; empty for all namespaces.
	Namespace string
	Filter    filter.Filter
	// From is the first key to read, encoded by [backend.OrderTuple]; nil to read from the beginning.
	From []byte
	// Limit is the maximum number of resources to return.
	Limit int
	// Scope restricts the resources to those of a scope; nil means no restriction.
	Scope *access.Scope
	// View is the state to read; nil for the newest state.
	View *index.View
}

// Current returns the current state of the index: see [index.Index.Current]. If there is no index, the view has no
// kinds.
func (r *Reader) Current() index.View {
	if r.index == nil {
		return index.View{}
	}
	return r.index.Current()
}

// stepRows is the number of resources of a step that are charged as one row.
const stepRows = 10

// Step reads resources of a kind from the index. more reports whether other resources follow. ok is false if the kind
// is not in memory. Streams use Step for snapshots. A step costs a tenth of a page of the same size.
func (r *Reader) Step(ctx context.Context, s Step) (edges []Edge, more, ok bool, err error) {
	if r.index == nil {
		return nil, false, false, nil
	}
	var view index.View
	if s.View != nil {
		view = *s.View
	} else {
		view, _ = r.index.View(ctx)
	}
	served, ok := view.Kind(s.Kind.Name)
	if !ok {
		return nil, false, false, nil
	}
	q := &plan.Query{Common: &plan.Common{Kind: s.Kind, Filter: s.Filter, Scope: s.Scope}, Namespace: s.Namespace}
	q.Narrow()
	read := &page.Read{Query: q, Want: plan.Want{In: plan.Interval{From: s.From}, Size: s.Limit, Ahead: true}}
	err = page.NewMemory(ctx, r.unreadable, view.Now(), stepRows).Do(ctx, read, served)
	return read.Edges, read.More, true, err
}
