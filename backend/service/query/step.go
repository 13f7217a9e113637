package query

import (
	"context"
	"slices"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/row"
)

// maxStepScans is how many scans take part in one step: with their guards they
// fit one call.
const maxStepScans = backend.MaxRanges / 3

// maxFirsts is how many bytes the first resources of the ranges of one step have, as far
// as sizes are known: each page has its first resource, whatever the others have.
const maxFirsts = 8 * backend.MaxPageBytes

// runScans reads until all scans are done. The next steps of all are one call.
// The errors are parallel to the scans. No step asks for more than the budget of
// the operation has left.
func (r *Reader) runScans(ctx context.Context, scans []*scan) []error {
	errs := make([]error, len(scans))
	if why := explanation(ctx); why != nil {
		defer func() {
			for _, sc := range scans {
				why.add(sc.explained())
			}
		}()
	}
	spent, sizes := budget.From(ctx), r.sizes
	for {
		spent.Pace(ctx)
		if err := ctx.Err(); err != nil {
			fail(errs, scans, failure.Of(err, backend.Key{}))
			return errs
		}
		left := spent.Left(budget.Rows)
		asked, expected, reads, firsts := 0, 0, 0, 0
		var active []int
		var ranges []backend.Range
		var named []int
		var g row.Guards
		for i, sc := range scans {
			switch {
			case sc.done || errs[i] != nil:
			case sc.query.names != nil:
				named = append(named, i)
			case len(active) < maxStepScans && (left > 0 && firsts < maxFirsts || len(active) == 0):
				firsts += sizes.estimate(sc.query.kind, 1)
				r := sc.request()
				r.Limit = min(r.Limit, max(left, 1))
				left -= r.Limit
				asked += r.Limit
				bytes := sizes.estimate(sc.query.kind, r.Limit)
				expected, reads = expected+bytes, reads+sizes.within(sc.query.kind, bytes)
				active = append(active, i)
				ranges = append(ranges, r)
				g.Add(sc.query.kind.Rows, sc.query.run != nil)
			}
		}
		err := spent.Spend(budget.Scans, len(active))
		if err == nil && spent.Left(budget.Rows) == 0 && len(active)+len(named) > 0 {
			err = spent.Spend(budget.Rows, 1)
		}
		if err == nil {
			err = spent.Ask(asked)
		}
		expected = min(expected, backend.MaxPageBytes)
		if err == nil {
			err = held(spent.Expect(ctx, expected, reads))
		}
		if err != nil {
			fail(errs, scans, err)
			return errs
		}
		if len(named) > 0 {
			r.stepNamed(ctx, scans, named, errs)
		}
		switch {
		case len(active) == 0 && len(named) == 0:
			return errs
		case len(active) == 0:
			continue
		}
		spent.Leave()
		pages, err := backend.Ranges(ctx, r.store, append(ranges, g.Ranges()...))
		spent.Return(ctx)
		spent.Answered(asked)
		spent.Unexpect(expected)
		var stale []*row.Definition
		if err == nil {
			stale = g.Note(pages[len(active):])
			err := spent.Spend(budget.Rows, resources(pages[:len(active)]))
			if err == nil {
				err = sizes.hold(ctx, scans, active, pages)
			}
			if err != nil {
				fail(errs, scans, held(err))
				return errs
			}
		}
		for n, i := range active {
			switch sc := scans[i]; {
			case err != nil:
				errs[i] = failure.Of(err, backend.Key{Kind: sc.query.kind.Name})
			case ctx.Err() != nil:
				errs[i] = failure.Of(ctx.Err(), backend.Key{})
			case sc.query.run != nil && slices.Contains(stale, sc.query.kind.Rows):
				sc.withoutRun()
			default:
				kept := len(sc.found)
				sc.looked += len(pages[n].Resources)
				sc.take(r, pages[n])
				if !sc.plain() {
					spent.Release(size(pages[n].Resources) - sizeOfEdges(sc.found[min(kept, len(sc.found)):]))
				}
			}
		}
	}
}

// fail is the end of all scans that are not done.
func fail(errs []error, scans []*scan, err error) {
	for i, sc := range scans {
		if !sc.done && errs[i] == nil {
			errs[i] = err
		}
	}
}

// resources is how many the pages have.
func resources(pages []backend.Page) (n int) {
	for i := range pages {
		n += len(pages[i].Resources)
	}
	return n
}
