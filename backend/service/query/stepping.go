package query

import (
	"context"

	"github.com/sluicegw/sluice/backend/service/kind"
)

// Step is a part of what a kind has, in the order of the names.
type Step struct {
	Kind *kind.Kind
	// Namespace empty is all.
	Namespace string
	Filter    Filter
	// From is the place of the first resource, as [backend.OrderTuple] makes it; nil is
	// the beginning.
	From []byte
	// Limit is how many resources are wanted.
	Limit int
}

// Step reads a part of what a kind has from the index in memory, from a state of its
// own, and says whether there is more behind it. Ok is false if the index does not
// serve the kind. It costs a tenth of what a page does: streams take the state so.
func (r *Reader) Step(ctx context.Context, s Step) (edges []Edge, more, ok bool, err error) {
	if r.index == nil {
		return nil, false, false, nil
	}
	view, _ := r.index.View(ctx)
	served, ok := view.Kind(s.Kind.Name)
	if !ok {
		return nil, false, false, nil
	}
	q := &query{kind: s.Kind, filter: s.Filter, namespace: s.Namespace}
	q.narrow()
	sc := &scan{query: q, in: interval{from: s.From}, size: s.Limit, ahead: true}
	rd := r.newReading(ctx, view.Now())
	rd.cheaper = stepRows
	err = rd.readOne(sc, served)
	if sc.nearest {
		sc.sortNearest()
	}
	return sc.found, sc.more, true, err
}

// stepRows is how many resources a step returns for the price of one.
const stepRows = 10
