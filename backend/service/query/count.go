package query

import (
	"context"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/row"
)

// countRuns counts what a scan would, by the lengths of its runs alone; ok is false if
// the runs hold more than the query keeps, or anything that cannot be read.
func (r *Reader) countRuns(ctx context.Context, sc *scan) (n int, ok bool, err error) {
	q := sc.query
	if err := r.routes(ctx, []*scan{sc}); err != nil {
		return 0, false, err
	}
	unreadable, err := r.unreadable.Count(ctx, q.kind, q.namespace)
	if err == nil && ctx.Err() != nil {
		err = failure.Of(ctx.Err(), backend.Key{})
	}
	if err != nil || !sc.route.exact || !sc.route.once || unreadable > 0 && q.filtered() {
		return 0, false, err
	}
	if len(sc.route.runs) == 0 {
		return 0, true, nil
	}
	spent := budget.From(ctx)
	if err := spent.Spend(budget.Steps, budget.Scan); err != nil {
		return 0, false, err
	}
	var ranges []backend.Range
	var guards row.Guards
	for _, run := range sc.route.runs {
		one := backend.Range{Kind: q.kind.Name, Namespace: q.namespace, Index: run.Index, Start: run.Start, End: run.End, Count: true}
		ranges = append(ranges, one)
		guards.Add(q.kind.Rows, run.Index != "")
	}
	spent.Leave()
	pages, err := backend.Ranges(ctx, r.store, append(ranges, guards.Ranges()...))
	spent.Return(ctx)
	if err != nil {
		return 0, false, failure.Of(err, backend.Key{Kind: q.kind.Name})
	}
	if len(guards.Note(pages[len(ranges):])) > 0 {
		return 0, false, nil
	}
	for i := range ranges {
		n += pages[i].Count
	}
	if err := spent.Spend(budget.Steps, budget.Counted*n); err != nil {
		return 0, false, err
	}
	n = max(n-unreadable, 0)
	explanation(ctx).add(Explained{Kind: q.kind.Name, Source: "store", By: "length of " + sc.route.String(), Returned: n})
	return n, true, nil
}
