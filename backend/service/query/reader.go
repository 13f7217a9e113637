// Package query reads resources: by key, by reference, and as pages in an order. Its
// subpackages parse filters, plan reads and make them.
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

// Resource is a stored resource and its body. The body is nil if it is unreadable.
type Resource = page.Resource

// Edge is one resource of a page.
type Edge = page.Edge

// Reader reads the resources of a catalogue's kinds. Safe for concurrent use.
type Reader struct {
	kinds      kind.Catalogue
	unreadable *kind.Unreadable
	index      *index.Index
	fetch      *page.Fetcher
	pages      *page.Scanner
	policies   *policies
	// declared are the references of each kind, by its name.
	declared map[string][]declared
}

// Config of a [Reader].
type Config struct {
	// Store is read for kinds that are not in memory. Required, as are Kinds and
	// Unreadable.
	Store      backend.Store
	Kinds      kind.Catalogue
	Unreadable *kind.Unreadable
	// Index is the index in memory over the store; nil for none.
	Index *index.Index
	// Access configures access control.
	Access access.Config
	// Policy provides the roles and bindings. Required if access control is on.
	Policy *policy.Source
}

// New returns a reader. It starts no goroutine.
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
	}
	r.policies.cfg = cfg.Access
	r.policies.source = cfg.Policy
	r.policies.unlimited = access.Unlimited()
	for _, k := range cfg.Kinds.All() {
		r.policies.kinds = append(r.policies.kinds, *k.Kind)
	}
	return r
}

// View returns a reader for another view of the catalogue. It shares the policy and the
// index with r.
func (r *Reader) View(kinds kind.Catalogue) *Reader {
	out := *r
	out.kinds = kinds
	out.declared = declaredOf(kinds)
	return &out
}

// Definitions returns what the index needs to know of the kinds of a catalogue that are
// kept in memory.
func Definitions(kinds kind.Catalogue) (out []index.Definition) {
	for _, k := range kinds.All() {
		if !k.OutOfMemory {
			out = append(out, k.Definition())
		}
	}
	return out
}

// Step requests a part of a kind's resources, in the order of the names.
type Step struct {
	Kind *kind.Kind
	// Namespace; empty means all.
	Namespace string
	Filter    filter.Filter
	// From is the first key, as [backend.OrderTuple] encodes it; nil is the beginning.
	From []byte
	// Limit is the maximum number of resources.
	Limit int
	// Scope limits the resources; nil means all.
	Scope *access.Scope
	// View is the state to read; nil means the newest.
	View *index.View
}

// Current returns the current state of the index; see [index.Index.Current]. Without an index, the
// view has no kind.
func (r *Reader) Current() index.View {
	if r.index == nil {
		return index.View{}
	}
	return r.index.Current()
}

// stepRows is how many resources of a step are charged as one.
const stepRows = 10

// Step reads a part of a kind's resources from the index in memory and reports whether more follow.
// ok is false if the kind is not in memory. Streams use it to send the initial state; it is charged
// a tenth of what a page is.
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
