package query

import (
	"context"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/service/failure"
)

// maxStepRanges is how many ranges one step asks for.
const maxStepRanges = backend.MaxRanges / 3

// maxFirsts is how many bytes the first resources of the ranges of one step have, as far
// as sizes are known: each page has its first resource, whatever the others have.
const maxFirsts = 8 * backend.MaxPageBytes

// stepping is the next step of scans: what it asks the store for.
type stepping struct {
	ranges []backend.Range
	asked  []int // the scans that ask, parallel to the first ranges
	counts []int // the scans that ask for the number of all, parallel to the rest
	named  []int // the scans that ask by keys
	// expected is what the step will hold, in bytes.
	expected int
}

// prepare prepares the next step of the scans that are not done.
func (r *Reader) prepare(scans []*scan, errs []error, left int) (st stepping) {
	firsts := 0
	for i, sc := range scans {
		switch {
		case sc.done || errs[i] != nil:
			continue
		case sc.query.names != nil:
			st.named = append(st.named, i)
			continue
		case len(st.asked) > 0 && (len(st.asked)+len(st.counts) >= maxStepRanges || left <= 0 || firsts >= maxFirsts):
			continue
		}
		if sc.countsFirst {
			st.counts = append(st.counts, i)
		}
		if sc.counted() {
			continue
		}
		firsts += r.sizes.estimate(sc.query.kind, 1)
		one := sc.request()
		one.Limit = min(one.Limit, max(left, 1))
		left -= one.Limit
		st.expected += r.sizes.estimate(sc.query.kind, one.Limit)
		st.asked = append(st.asked, i)
		st.ranges = append(st.ranges, one)
	}
	for _, i := range st.counts {
		all := scans[i].left
		b := scans[i].query.places()
		all.Start, all.End, all.Count = b.start, b.end, true
		st.ranges = append(st.ranges, all)
	}
	st.expected = min(st.expected, backend.MaxPageBytes)
	return st
}

// pay takes what the step asks for from the budget.
func (st *stepping) pay(ctx context.Context) error {
	spent := budget.From(ctx)
	err := spent.Spend(budget.Steps, budget.Scan*len(st.ranges))
	if err == nil && spent.Left(budget.Rows) == 0 && len(st.asked)+len(st.named) > 0 {
		err = spent.Spend(budget.Rows, 1)
	}
	if err == nil {
		err = held(spent.Expect(ctx, st.expected))
	}
	return err
}

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
	var whole []*scan // those that look at all of their kinds
	for _, sc := range scans {
		if sc.begin(); !sc.done && sc.readsAll() {
			whole = append(whole, sc)
		}
	}
	if len(whole) == 0 {
		r.runSteps(ctx, scans, errs)
		return errs
	}
	err := r.affordable(ctx, whole)
	switch {
	case err != nil:
	case len(scans) == 1:
		err = r.slots.share(ctx, scans[0], func() error {
			r.runSteps(ctx, scans, errs)
			return errs[0]
		})
	default:
		var end func()
		if end, err = r.slots.begin(ctx); err == nil {
			defer end()
			r.runSteps(ctx, scans, errs)
		}
	}
	if err != nil {
		fail(errs, scans, err)
	}
	return errs
}

// runSteps is what runScans does of scans that have begun.
func (r *Reader) runSteps(ctx context.Context, scans []*scan, errs []error) {
	spent := budget.From(ctx)
	for {
		spent.Pace(ctx)
		if err := ctx.Err(); err != nil {
			fail(errs, scans, failure.Of(err, backend.Key{}))
			return
		}
		st := r.prepare(scans, errs, spent.Left(budget.Rows))
		if len(st.ranges)+len(st.named) == 0 {
			return
		}
		if err := st.pay(ctx); err != nil {
			fail(errs, scans, err)
			return
		}
		if len(st.named) > 0 {
			r.stepNamed(ctx, scans, st.named, errs)
		}
		if len(st.ranges) == 0 {
			continue
		}
		if err := r.step(ctx, scans, &st, errs); err != nil {
			fail(errs, scans, err)
			return
		}
	}
}

// step is the next step of scans that read ranges. An error is that of all of them.
func (r *Reader) step(ctx context.Context, scans []*scan, st *stepping, errs []error) error {
	spent := budget.From(ctx)
	spent.Leave()
	pages, err := backend.Ranges(ctx, r.store, st.ranges)
	spent.Return(ctx)
	spent.Unexpect(st.expected)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return failure.Of(err, backend.Key{Kind: st.ranges[0].Kind})
	}
	counts := pages[len(st.asked):]
	pages = pages[:len(st.asked)]
	err = spent.Spend(budget.Rows, resources(pages))
	if err == nil {
		err = r.sizes.hold(ctx, scans, st.asked, pages)
	}
	if err != nil {
		return held(err)
	}
	for n, i := range st.counts {
		if err := r.count(ctx, scans[i], counts[n].Count); err != nil {
			return err
		}
	}
	for n, i := range st.asked {
		sc := scans[i]
		kept := len(sc.found)
		sc.looked += len(pages[n].Resources)
		sc.take(r, pages[n])
		if err := spent.Spend(budget.Steps, sc.tests); err != nil {
			return err
		}
		sc.tests = 0
		if !sc.plain() {
			spent.Release(size(pages[n].Resources) - sizeOfEdges(sc.found[min(kept, len(sc.found)):]))
		}
	}
	return nil
}

// count takes the number of all that the query is about, as the store has it: what this
// gateway found unreadable is left out, as it is from the pages.
func (r *Reader) count(ctx context.Context, sc *scan, n int) error {
	if err := budget.From(ctx).Spend(budget.Steps, budget.Counted*n); err != nil {
		return err
	}
	unreadable, err := r.unreadable.Count(ctx, sc.query.kind, sc.query.namespace)
	if err != nil {
		return err
	}
	sc.count, sc.countsFirst = max(n-unreadable, 0), false
	sc.done = sc.done || sc.counted()
	return nil
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
