// Package query reads resources: by their keys, by who refers to them, and page by page in
// an order. The packages below it parse filters, plan, and read.
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

// Resource is a stored resource and its body, nil if it is unreadable.
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
	// Store is read where the index does not serve. Required, like Kinds and Unreadable.
	Store      backend.Store
	Kinds      kind.Catalogue
	Unreadable *kind.Unreadable
	// Index over the store; nil for none.
	Index *index.Index
	// Access configures access control.
	Access access.Config
	// Policy has the roles and bindings. Required with access control.
	Policy *policy.Source
}

// New returns a reader. It starts nothing.
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

// View returns a reader of a view of the catalogue. It shares the policy and what is read.
func (r *Reader) View(kinds kind.Catalogue) *Reader {
	out := *r
	out.kinds = kinds
	out.declared = declaredOf(kinds)
	return &out
}

// Definitions returns the kinds of a catalogue that the index in memory keeps.
func Definitions(kinds kind.Catalogue) (out []index.Definition) {
	for _, k := range kinds.All() {
		if !k.OutOfMemory {
			out = append(out, k.Definition())
		}
	}
	return out
}

// Step is a part of what a kind has, in the order of the names.
type Step struct {
	Kind *kind.Kind
	// Namespace empty is all.
	Namespace string
	Filter    filter.Filter
	// From is the place of the first resource, as [backend.OrderTuple] makes it; nil is
	// the beginning.
	From []byte
	// Limit is how many resources are wanted.
	Limit int
	// Scope has the resources that are wanted; nil for all.
	Scope *access.Scope
	// View is the state that is read; nil for the newest.
	View *index.View
}

// Current returns the state of the index as it is; see [index.Index.Current]. Without an index it knows no kind.
func (r *Reader) Current() index.View {
	if r.index == nil {
		return index.View{}
	}
	return r.index.Current()
}

// stepRows is how many resources a step returns for the price of one.
const stepRows = 10

// Step reads a part of what a kind has from the index in memory, and reports whether there is more behind it. Ok is
// false if the index does not serve the kind. It costs a tenth of what a page does: streams take the state so.
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
